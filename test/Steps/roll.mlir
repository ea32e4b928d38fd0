// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops -lacis-apply-steps | FileCheck %s

// One loop: a larger maximum, the ratio to it, the exponential, and the rescaled sum.
// CHECK-LABEL: func.func @softmax(
// CHECK:         lacis.loop "i"
// CHECK:           %[[MAX:.*]] = lacis.workspace(%{{.*}}) place<private> : tensor<?xf32
// CHECK:           lacis.level_loop "j"
// CHECK:             %[[OLD:.*]] = lacis.read %[[MAX]]
// CHECK:             %[[NEW:.*]] = arith.maximumf %[[OLD]]
// CHECK:             %[[GROWTH:.*]] = arith.subf %[[OLD]], %[[NEW]]
// CHECK:             %[[RATIO:.*]] = math.exp %[[GROWTH]]
// CHECK:             lacis.write %[[RATIO]]
// CHECK:             math.exp
// CHECK:             arith.mulf
// CHECK:             arith.addf
// CHECK:           } rolled
// CHECK:           math.log
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @softmax(%p: !lacis.pattern<?x?, #csr> {lacis.name = "p"}, %t: tensor<?x?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.roll<loop = "j">]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x?xf32>
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %lowest = linalg.fill ins(%least : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"], lacis.name = "s"}
      ins(%t : tensor<?x?xf32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #csr>
  %m = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"], lacis.name = "m"}
      ins(%s : tensor<?x?xf32, #csr>) outs(%lowest : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %e = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"], lacis.name = "e"}
      ins(%s, %m : tensor<?x?xf32, #csr>, tensor<?xf32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #csr>
  %l = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"], lacis.name = "l"}
      ins(%e : tensor<?x?xf32, #csr>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"], lacis.loops = ["i"], lacis.name = "y"}
      ins(%m, %l : tensor<?xf32>, tensor<?xf32>) outs(%empty : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %g = math.log %b : f32
    %r = arith.addf %a, %g : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{roll: loop 'j' is made of no chain of statements; a function of lacis.kernel is one}}
// expected-note @+1 {{asked for}}
func.func @loops(%w: tensor<?x?xf32, #csr>, %n: index) attributes {lacis.steps = [#lacis.roll<loop = "j">]} {
  lacis.loop "i" %i to %n {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  return
}
