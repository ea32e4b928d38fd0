// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-target=target=cpu | FileCheck %s

// A nest for small sizes is a launch whose number of units is 0 unless the size is in its range.
// CHECK:      launches = [{entry = "linear_0", units = #lacis.size<(arg [[B:[0-9]+]] in [0, 1])
// CHECK-SAME: entry = "linear_1", units = #lacis.size<(arg [[B]] in [2, 4])
// CHECK-SAME: entry = "linear_2", units = #lacis.size<(arg [[B]] in [5, ?])
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @linear(%w: tensor<?x?xf32, #csr>, %x: tensor<?x?xf32>, %init: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {lacis.kernel, lacis.steps = [#lacis.upto<loop = "b", most = 1>, #lacis.upto<loop = "b", most = 4>]} {
  %y = linalg.generic {lacis.loops = ["b", "i", "j"],
      indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %x : tensor<?x?xf32, #csr>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
