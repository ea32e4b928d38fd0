// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-sums -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// Each row lies in one part: the part that lists its rows has a nest for them, the other the rest; nothing is combined.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    lacis.classes = {{\[\["long"\]\]}}
// CHECK:         %[[LONG:.*]] = lacis.part "long"
// CHECK:         %[[ROOM:.*]] = lacis.positions %[[LONG]][0]
// CHECK:         %[[ALL:.*]] = lacis.walk %[[LONG]]
// CHECK:         lacis.loop "i"<part "long"> %{{.*}} to %[[ROOM]]
// CHECK-NOT:       short
// CHECK:           %[[ROW:.*]], %{{.*}} = lacis.coordinate %[[LONG]][0]
// CHECK:           lacis.level_loop "j"<part "long"> %[[LONG]][1]
// CHECK:           lacis.write %{{.*}} to %{{.*}}[%[[ROW]]]
// CHECK:         lacis.loop "i"
// CHECK:           %[[LO:.*]], %[[HI:.*]] = lacis.bounds %[[ALL]][1]
// CHECK:           %[[NONE:.*]] = arith.cmpi sge, %[[LO]], %[[HI]]
// CHECK:           scf.if %[[NONE]]
// CHECK:             lacis.level_loop "j"<part "short">
// CHECK-NOT:         lacis.level_loop
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
#sum = #lacis.sum<short = #csr when nnz(i) lt 256, long = #dcsr>
func.func @rows(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #sum>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// No part has all rows: they are written as if they were empty, and the last part's nest is the one that others join.
// CHECK-LABEL: func.func @listed(
// CHECK-SAME:    lacis.classes = {{\[\["b"\]\]}}
// CHECK:         lacis.loop "i"<phase "unlisted">
// CHECK:         lacis.loop "i"<part "b">
// CHECK:           lacis.level_loop "j"<part "b">
// CHECK:         lacis.loop "i"
// CHECK:           lacis.level_loop "j"<part "rest">
#two = #lacis.format<(i, j) -> (i : compressed, j : packed<2>)>
#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
#sum = #lacis.sum<b = #two when nnz(i) lt 3, rest = #dcsr>
func.func @listed(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #sum>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#sum = #lacis.sum<ell = #ell when fits, rest = #csr>
// expected-error @+1 {{own: operand 'w' has no form 'classes': a rule of it looks at more than i, counts under that and digits of other axes, so that two parts may share a row}}
func.func @shared(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.own<operand = "w", form = "classes">]} {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #sum>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
