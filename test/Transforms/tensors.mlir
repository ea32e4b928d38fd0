// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-loops -lacis-to-buffers | FileCheck %s

// What a launch must be given: letters are shared sizes, arrays are as long as their levels say.
#w = #lacis.format<(i, j) -> (i floordiv 4 : dense, j floordiv 4 : compressed, i mod 4 : dense, j mod 4 : dense)>

// CHECK: sizes = [{multiple = 8 : i64, name = "i"}, {name = "j"}, {name = "b", value = 3 : i64}, {name = ""}]
// CHECK-SAME: tensors = [
// The packed operand's logical sizes, the dense operand, the output:
// CHECK-SAME: {dims = [#lacis.size<arg 0>, #lacis.size<arg 1>], operand = 0 : i64}
// CHECK-SAME: {dims = [#lacis.size<arg 2>, #lacis.size<arg 1>], dtype = "f32", operand = 1 : i64}
// CHECK-SAME: {dims = [#lacis.size<arg 2>, #lacis.size<arg 0>], dtype = "f32", operand = -1 : i64}
// The positions of ceildiv(i, 4) rows of blocks, and one more; a coordinate and a block of values for each entry:
// CHECK-SAME: {dims = [#lacis.size<ceildiv(arg 0, 4) + 1>], dtype = "i32", name = "pos1", operand = 0 : i64}
// CHECK-SAME: {dims = [#lacis.size<arg 3>], dtype = "i32", name = "crd1", operand = 0 : i64}
// CHECK-SAME: {dims = [#lacis.size<arg 3>, #lacis.size<4>, #lacis.size<4>], dtype = "f32", name = "values", operand = 0 : i64}
func.func @linear(%w: tensor<?x?xf32, #w> {lacis.name = "w", lacis.divisible = array<i64: 8, 1>},
                  %x: tensor<3x?xf32> {lacis.name = "x"}) -> tensor<3x?xf32> attributes {lacis.kernel, lacis.steps = []} {
  %c0 = arith.constant 0 : index
  %M = tensor.dim %w, %c0 : tensor<?x?xf32, #w>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%M) : tensor<3x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<3x?xf32>) -> tensor<3x?xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #w>, tensor<3x?xf32>) outs(%init : tensor<3x?xf32>) {
    ^bb0(%a: f32, %v: f32, %acc: f32):
      %m = arith.mulf %a, %v : f32
      %r = arith.addf %acc, %m : f32
      linalg.yield %r : f32
  } -> tensor<3x?xf32>
  return %s : tensor<3x?xf32>
}
