// SPDX-License-Identifier: Apache-2.0
// RUN: %outside lacis-compile %s --target=cpu --emit=llvm -o - | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: %outside lacis-compile %s --target=cuda:sm_90a --emit=llvm -o - | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: %outside lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=PTX

// A product with a format of kinds from outside compiles for both targets; no pass knows them.
// CPU:   define {{.*}} @linear_{{[0-9]+}}(
// CUDA:  define {{.*}}ptx_kernel {{.*}} @linear_{{[0-9]+}}(
// CHECK: sub {{.*}}i32
// PTX:   .entry linear_{{[0-9]+}}(
#w = #lacis.format<(i, j) -> (i : dense, j : even*mirrored)>
func.func @linear(%w: tensor<?x?xf32, #w> {lacis.name = "w"}, %x: tensor<?x?xf32> {lacis.name = "x"}) -> tensor<?x?xf32>
    attributes {lacis.kernel, lacis.steps = []} {
  %c0 = arith.constant 0 : index
  %B = tensor.dim %x, %c0 : tensor<?x?xf32>
  %M = tensor.dim %w, %c0 : tensor<?x?xf32, #w>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%B, %M) : tensor<?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #w>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
    ^bb0(%a: f32, %v: f32, %acc: f32):
      %m = arith.mulf %a, %v : f32
      %r = arith.addf %acc, %m : f32
      linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}
