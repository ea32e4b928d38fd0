// SPDX-License-Identifier: Apache-2.0
// The strategies of `race` on a GPU go through the assembler.
// REQUIRES: ptxas
// DEFINE: %{assemble} = lacis-compile - --target=cuda:sm_90a --ptxas=%ptxas --check-ptxas --emit=artifact -o - | FileCheck %s
// RUN: sed 's/STEPS/#lacis.race<loop = "i_j0", strategy = "order">/' %s | %{assemble}
// RUN: sed 's/STEPS/#lacis.race<loop = "i_j0", strategy = "private">/' %s | %{assemble}
// RUN: sed 's/STEPS/#lacis.race<loop = "i_j0", strategy = "atomic">/' %s | %{assemble}
// RUN: sed 's/STEPS/#lacis.split<loop = "i_j0", factor = 32>, #lacis.race<loop = "i_j01", strategy = "segment">, #lacis.bind<loop = "i_j01", unit = "lane">/' %s | %{assemble}

// CHECK: "kind":"cubin"
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @linear(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %x: tensor<?xf32> {lacis.name = "x"}) -> tensor<?xf32>
    attributes {lacis.kernel, lacis.nondeterministic, lacis.steps = [
      #lacis.split_nnz<loop = "i_j", factor = 8>, STEPS]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
  %e = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #csr>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
