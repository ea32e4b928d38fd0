// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// A choice that coordinates make is made once for a tile that has the first value everywhere, which the bounds of what is
// compared say: the last column of the tile against its first row. Other tiles choose element by element.
// CHECK-LABEL: func.func @mask(
// CHECK:         } consumers 1
// CHECK:           %[[S:.*]] = lacis.complete
// CHECK:           %[[J:.*]] = arith.muli %{{.*}}, %c64
// CHECK:           %[[LAST:.*]] = arith.addi %[[J]], %c63
// CHECK:           %[[LASTI:.*]] = arith.index_cast %[[LAST]]
// CHECK:           %[[LASTF:.*]] = arith.sitofp %[[LASTI]]
// CHECK:           %[[I:.*]] = arith.muli %arg6, %c64
// CHECK:           %[[FIRST:.*]] = arith.index_cast %[[I]]
// CHECK:           %[[FIRSTF:.*]] = arith.sitofp %[[FIRST]]
// CHECK:           %[[ALL:.*]] = arith.cmpf ole, %[[LASTF]], %[[FIRSTF]]
// CHECK:           %[[T:.*]] = scf.if %[[ALL]] -> (!lacis.acc<64x64xf32>) {
// CHECK-NEXT:        scf.yield %[[S]]
// CHECK:           } else {
// CHECK:             lacis.map %{{.*}}, %[[S]] at[%{{.*}}, %[[J]]
// CHECK:               arith.select
// CHECK:             scf.yield
// CHECK:           lacis.map %[[T]] {
#p = #lacis.format<(h, i, j) -> (h : batch, i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @mask(%q: tensor<?x?x32xbf16> {lacis.name = "q", lacis.divisible = array<i64: 2, 128, 1>}, %k: tensor<?x?x32xbf16> {lacis.name = "k", lacis.divisible = array<i64: 2, 128, 1>}, %v: tensor<?x?x16xbf16> {lacis.name = "v", lacis.divisible = array<i64: 2, 128, 1>}, %pattern: !lacis.pattern<?x?x?, #p> {lacis.name = "pattern", lacis.divisible = array<i64: 2, 128, 128>, lacis.full}) -> (tensor<?x?x16xbf16> {lacis.name = "out"})
    attributes {lacis.kernel, lacis.steps = [], lacis.rolls = "tiles"} {
  %e1 = lacis.zeros %pattern : !lacis.pattern<?x?x?, #p> to tensor<?x?x?xf32, #p>
  %s = linalg.generic {indexing_maps = [affine_map<(h, i, j, d) -> (h, i, d)>, affine_map<(h, i, j, d) -> (h, j, d)>, affine_map<(h, i, j, d) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "j", "d"], lacis.name = "s"}
      ins(%q, %k : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>) outs(%e1 : tensor<?x?x?xf32, #p>) {
  ^bb0(%in1_0: bf16, %in1_1: bf16, %acc1: f32):
  %e2 = arith.extf %in1_0 : bf16 to f32
  %e3 = arith.extf %in1_1 : bf16 to f32
  %e4 = arith.mulf %e2, %e3 : f32
  %e5 = arith.addf %acc1, %e4 : f32
  linalg.yield %e5 : f32
  } -> tensor<?x?x?xf32, #p>
  %e6 = lacis.zeros %pattern : !lacis.pattern<?x?x?, #p> to tensor<?x?x?xf32, #p>
  %t = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "i", "j"], lacis.name = "t"}
      ins(%s : tensor<?x?x?xf32, #p>) outs(%e6 : tensor<?x?x?xf32, #p>) {
  ^bb0(%in6_0: f32, %acc6: f32):
  %e7 = linalg.index 2 : index
  %e8 = arith.index_cast %e7 : index to i32
  %e9 = arith.sitofp %e8 : i32 to f32
  %e10 = linalg.index 1 : index
  %e11 = arith.index_cast %e10 : index to i32
  %e12 = arith.sitofp %e11 : i32 to f32
  %e13 = arith.cmpf ole, %e9, %e12 : f32
  %e14 = arith.constant 0.0 : f32
  %e15 = arith.select %e13, %in6_0, %e14 : f32
  linalg.yield %e15 : f32
  } -> tensor<?x?x?xf32, #p>
  %e16 = arith.constant 0 : index
  %e17 = tensor.dim %t, %e16 : tensor<?x?x?xf32, #p>
  %e18 = arith.constant 1 : index
  %e19 = tensor.dim %t, %e18 : tensor<?x?x?xf32, #p>
  %e20 = tensor.empty(%e17, %e19) : tensor<?x?x16xf32>
  %e21 = arith.constant 0.0 : f32
  %e22 = linalg.fill ins(%e21 : f32) outs(%e20 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %a_wide = linalg.generic {indexing_maps = [affine_map<(h, i, e, j) -> (h, i, j)>, affine_map<(h, i, e, j) -> (h, j, e)>, affine_map<(h, i, e, j) -> (h, i, e)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "e", "j"], lacis.name = "a_wide"}
      ins(%t, %v : tensor<?x?x?xf32, #p>, tensor<?x?x16xbf16>) outs(%e22 : tensor<?x?x16xf32>) {
  ^bb0(%in22_0: f32, %in22_1: bf16, %acc22: f32):
  %e23 = arith.extf %in22_1 : bf16 to f32
  %e24 = arith.mulf %in22_0, %e23 : f32
  %e25 = arith.addf %acc22, %e24 : f32
  linalg.yield %e25 : f32
  } -> tensor<?x?x16xf32>
  %e26 = arith.constant 0 : index
  %e27 = tensor.dim %a_wide, %e26 : tensor<?x?x16xf32>
  %e28 = arith.constant 1 : index
  %e29 = tensor.dim %a_wide, %e28 : tensor<?x?x16xf32>
  %e30 = tensor.empty(%e27, %e29) : tensor<?x?x16xbf16>
  %a = linalg.generic {indexing_maps = [affine_map<(h, i, e) -> (h, i, e)>, affine_map<(h, i, e) -> (h, i, e)>], iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "i", "e"], lacis.name = "a"}
      ins(%a_wide : tensor<?x?x16xf32>) outs(%e30 : tensor<?x?x16xbf16>) {
  ^bb0(%in30_0: f32, %acc30: bf16):
  %e31 = arith.truncf %in30_0 : f32 to bf16
  linalg.yield %e31 : bf16
  } -> tensor<?x?x16xbf16>
  return %a : tensor<?x?x16xbf16>
}
