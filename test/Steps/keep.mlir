// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops -lacis-apply-steps | FileCheck %s

// A statement that is read once has a nest, whose workspace the other reads.
// CHECK-LABEL: func.func @sums(
// CHECK:         %[[KEPT:.*]] = lacis.workspace(%{{.*}}) kept<"s">
// CHECK:         lacis.loop "i_j{{.*}}"<statement "s">
// CHECK:           lacis.write %{{.*}} to %[[KEPT]]
// CHECK:         lacis.loop "i"
// CHECK:           lacis.level_loop "j"
// CHECK:             lacis.read %[[KEPT]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @sums(%p: !lacis.pattern<?x?, #csr>, %t: tensor<?x?xf32>, %zeros: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.keep<tensor = "s">]} {
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
  return %y : tensor<?xf32>
}

// -----

// expected-error @+2 {{keep: 's' is no statement of a chain; a function of lacis.kernel is one}}
// expected-note @+1 {{asked for}}
func.func @loops(%n: index) attributes {lacis.steps = [#lacis.keep<tensor = "s">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
