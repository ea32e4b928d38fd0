// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-resolve-kinds -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s
// RUN: lacis-opt %s -split-input-file -lacis-resolve-kinds -lacis-choose-walks -lacis-linalg-to-loops | lacis-opt -split-input-file -lacis-resolve-kinds

// Rows run over the coordinates of a binding that has as many as they are; each row is written once.
// CHECK:         lacis.binding @pairs same 0 inverse(%[[R:.*]]) {
// CHECK:           lacis.answer
// CHECK-LABEL: func.func @rows(
// CHECK:         lacis.loop "i" %[[OWN:[^ ]*]] to
// CHECK:           %[[I:.*]] = lacis.solve %{{.*}}[0] of 0 at %[[OWN]]
// CHECK:           lacis.level_loop "j" %{{.*}}[1]
// CHECK:           lacis.write %{{.*}} to %{{.*}}[%[[I]]]
#pairs = #lacis.format<(i, j) let r = @pairs(i) -> (r : dense, j : compressed)>
lacis.binding @pairs same 0 inverse(%r) {
  %one = arith.constant 1 : index
  %i = arith.xori %r, %one : index
  lacis.answer %i : index
}
func.func @rows(%w: tensor<?x?xf32, #pairs>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #pairs>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Without the operation rows are found by the companion index.
// CHECK-LABEL: func.func @of_data(
// CHECK:         lacis.loop "i"
// CHECK-NOT:     lacis.solve
#pairs = #lacis.format<(i, j) let r = @pairs(i) -> (r : dense, j : compressed)>
func.func @of_data(%w: tensor<?x?xf32, #pairs>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #pairs>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
