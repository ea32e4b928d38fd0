// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// The first result is the last argument; another is an operand that is written, by a nest of its own before it.
// CHECK-LABEL: func.func @sums(
// CHECK-SAME:    %[[LOG:[^:]*]]: tensor<?xf32> {lacis.axes = ["i"], lacis.name = "log", lacis.written}
// CHECK-SAME:    %[[Y:[^:]*]]: tensor<?xf32> {lacis.axes = ["i"], lacis.name = "y", lacis.output}
// CHECK:         lacis.loop "i"<statement "l">
// CHECK:           lacis.level_loop "j"<statement "l">
// CHECK:           math.log
// CHECK:           lacis.write %{{.*}} to %[[LOG]]
// CHECK:         lacis.loop "i"
// CHECK:           lacis.write %{{.*}} to %[[Y]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @sums(%p: !lacis.pattern<?x?, #csr>, %t: tensor<?x?xf32>, %zeros: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?xf32> {lacis.name = "log"}) {
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %s = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"], lacis.name = "s"}
      ins(%t : tensor<?x?xf32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #csr>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"], lacis.name = "y"}
      ins(%s : tensor<?x?xf32, #csr>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %l = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"], lacis.loops = ["i"], lacis.name = "l"}
      ins(%y : tensor<?xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.log %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y, %l : tensor<?xf32>, tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @sums(%p: !lacis.pattern<?x?, #csr>, %t: tensor<?x?xf32>, %zeros: tensor<?xf32>)
    -> (tensor<?xf32>, tensor<?x?xf32, #csr>) {
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  // expected-error @+1 {{the first result of a kernel alone may be on a pattern}}
  %s = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"], lacis.name = "s"}
      ins(%t : tensor<?x?xf32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #csr>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"], lacis.name = "y"}
      ins(%s : tensor<?x?xf32, #csr>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y, %s : tensor<?xf32>, tensor<?x?xf32, #csr>
}

// -----

// expected-error @+1 {{a kernel returns one tensor, made by 'linalg.generic'; a chain of statements several}}
func.func @no_chain(%s: tensor<?x?xf32>, %zeros: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"], lacis.name = "y"}
      ins(%s : tensor<?x?xf32>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y, %y : tensor<?xf32>, tensor<?xf32>
}
