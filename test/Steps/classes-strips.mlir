// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-sums -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// Rules that name columns make groups: in each a row lies in one part. The second adds to what the first left, and what
// follows the sum is done behind both.
// CHECK-LABEL: func.func @strips(
// CHECK-SAME:    %[[Y:[^:]*]]: tensor<?xf32> {lacis.axes = ["i"], lacis.listed
// CHECK-SAME:    lacis.classes = {{\[\["a", "b"\], \["c"\]\]}}
// CHECK:         lacis.loop "i"<phase "unlisted">
// CHECK:         lacis.loop "i"<part "a">
// CHECK:           %[[A:.*]] = lacis.level_loop "j"<part "a">
// CHECK:           lacis.write %[[A]] to %[[Y]]
// CHECK:         lacis.loop "i"<part "b">
// CHECK:           %[[B:.*]] = lacis.level_loop "j"<part "b">
// CHECK:           lacis.write %[[B]] to %[[Y]]
// CHECK:         lacis.loop "i"<part "c">
// CHECK:           %[[C:.*]] = lacis.level_loop "j"<part "c">
// CHECK:           %[[LEFT:.*]] = lacis.read %[[Y]]
// CHECK:           %[[SUM:.*]] = arith.addf %[[LEFT]], %[[C]]
// CHECK:           lacis.write %[[SUM]] to %[[Y]]
// CHECK:         lacis.loop "i"
// CHECK:           lacis.level_loop "j"<part "d">
// CHECK:         lacis.loop "i"<phase "finished">
// CHECK:           %[[ALL:.*]] = lacis.read %[[Y]]
// CHECK:           arith.negf %[[ALL]]
// CHECK:         } finishes
#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
#sum = #lacis.sum<a = #dcsr when j lt 8 and nnz(i) lt 3, b = #dcsr when j lt 8, c = #dcsr when nnz(i) lt 3, d = #dcsr>
func.func @strips(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #sum>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %z = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"], lacis.loops = ["i"]}
      ins(%y : tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %old: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %z : tensor<?xf32>
}
