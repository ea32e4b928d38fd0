// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-resolve-kinds -lacis-lower-sums -lacis-choose-walks | FileCheck %s

// Kinds are looked up below the parts of a sum, which keeps its rules: that of the last part is empty.
lacis.kind @listed arrays(pos : i32 per parent plus 1, crd : i32 per position) facts(ordered, unique) {
  bounds(%p) {
    %one = arith.constant 1 : index
    %next = arith.addi %p, %one : index
    %lo = lacis.field @pos[%p]
    %hi = lacis.field @pos[%next]
    lacis.answer %lo, %hi : index, index
  }
  coordinate(%p, %pos) {
    %crd = lacis.field @crd[%pos]
    lacis.answer %crd : index
  }
}

// CHECK:      lacis.part "top"
// CHECK:      lacis.class = "rest", lacis.group = 0
// CHECK:      lacis.part "rest"
// CHECK:      lacis.class = "list", lacis.group = 0
#rows = #lacis.format<(i, j) -> (i : dense, j : @listed)>
#sum = #lacis.sum<top = #rows when i floordiv 8 lt 1, rest = #rows>
func.func @rows(%w: tensor<?x?xf32, #sum>, %init: tensor<?xf32>) -> tensor<?xf32> attributes {lacis.kernel} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #sum>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
