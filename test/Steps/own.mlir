// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// Rows that are listed are walked in their order; the others are written before, as empty ones.
// CHECK-LABEL: func.func @list(
// CHECK-NOT:     lacis.walk
// CHECK:         lacis.loop "i"<phase "unlisted"> %[[ALL:.*]] to
// CHECK:           lacis.write %{{.*}} to %[[Y:.*]][%[[ALL]]]
// CHECK:         %[[ROOM:.*]] = lacis.positions %[[W:.*]][0]
// CHECK:         lacis.loop "i" %[[P:.*]] to %[[ROOM]]
// CHECK:           %[[POSITION:.*]] = arith.addi %{{.*}}, %[[P]]
// CHECK:           %[[ROW:.*]], %{{.*}} = lacis.coordinate %[[W]][0] at %[[POSITION]]
// CHECK:           lacis.level_loop "j" %[[W]][1] at %[[POSITION]]
// CHECK:           lacis.write %{{.*}} to %[[Y]][%[[ROW]]]
#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
func.func @list(%w: tensor<?x?xf32, #dcsr> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #dcsr>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// What begins as zeros and stays so is zeros of the launch.
// CHECK-LABEL: func.func @zeros(
// CHECK-SAME:    lacis.listed = true
// CHECK-NOT:     "unlisted.i"
// CHECK:         lacis.loop "i"
#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
func.func @zeros(%w: tensor<?x?xf32, #dcsr> {lacis.name = "w"}, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #dcsr>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Asked for, the companion is walked, and the steps say so already.
// CHECK-LABEL: func.func @companion(
// CHECK-NOT:     lacis.owners
// CHECK:         lacis.walk
// CHECK-NOT:     "unlisted.i"
#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
func.func @companion(%w: tensor<?x?xf32, #dcsr> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.own<operand = "w", form = "companion">]} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #dcsr>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
