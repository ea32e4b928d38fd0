// SPDX-License-Identifier: Apache-2.0
// Tiles that the threads of a block load into shared memory go through the assembler, with guards that only some pass.
// REQUIRES: ptxas
// DEFINE: %{assemble} = lacis-compile - --ptxas=%ptxas --check-ptxas --emit=artifact -o -
// RUN: sed 's/COLUMN/#lacis.bind<loop = "b11", unit = "thread.x">/' %s | %{assemble} --target=cuda:sm_80 | FileCheck %s
// RUN: sed 's/COLUMN/#lacis.jam<loop = "b11">/' %s | %{assemble} --target=cuda:sm_90a | FileCheck %s
// RUN: sed 's/COLUMN/#lacis.vectorize<loop = "b11", width = 4>/' %s | %{assemble} --target=cuda:sm_90a | FileCheck %s

// CHECK: "kind":"cubin"
#bsr = #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
func.func @linear(%w: tensor<?x?xf32, #bsr> {lacis.name = "w"}, %x: tensor<?x?xf32> {lacis.name = "x"}) -> tensor<?x?xf32>
    attributes {lacis.kernel, lacis.steps = [
      #lacis.split<loop = "b", factor = 64>, #lacis.split<loop = "b1", factor = 4>,
      #lacis.reorder<loops = ["b0", "i0", "i1", "b10", "b11"]>, COLUMN, #lacis.bind<loop = "b10", unit = "thread.y">,
      #lacis.bind<loop = "i1", unit = "thread.z">, #lacis.stage<operand = "x", place = "shared", loop = "j0">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #bsr>
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #bsr>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %p = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %p : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
