// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// Columns add to the output, which the launch has filled with zeros; they meet in its elements, vectors do not.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, {{.*}} %[[Y:[^:]*]]: tensor<?x?xf32> {{{.*}}lacis.listed = true
// CHECK-NOT:     lacis.walk
// CHECK:         lacis.loop "b" %[[B:[^ ]*]] to
// CHECK-NEXT:      lacis.loop "j" %[[J:[^ ]*]] to
// CHECK:             %[[COLUMN:.*]] = lacis.locate %[[W]][0] at %{{.*}}(%[[J]])
// CHECK:             lacis.level_loop "i" %[[W]][1] at %[[COLUMN]] (%[[P:.*]], %[[I:.*]]) :
// CHECK:               %[[BEFORE:.*]] = lacis.read %[[Y]][%[[B]], %[[I]]]
// CHECK:               %[[SUM:.*]] = arith.addf %[[BEFORE]]
// CHECK:               lacis.write %[[SUM]] to %[[Y]][%[[B]], %[[I]]]
// CHECK:           } meets
// CHECK-NOT:     lacis.loop
#csc = #lacis.format<(i, j) -> (j : dense, i : compressed)>
func.func @columns(%w: tensor<?x?xf32, #csc> {lacis.name = "w"}, %x: tensor<?x?xf32>, %b: index, %i: index) -> tensor<?x?xf32>
    attributes {lacis.steps = [#lacis.own<operand = "w", form = "push">]} {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%b, %i) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #csc>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %p = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %p : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
