// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// A box that two products of a round take is brought once, with numbers for its columns. Products of operands alone begin
// the round together, what a statement has made is multiplied at once; a place is released behind what read it last.
// CHECK-LABEL: func.func @gradients(
// CHECK:         %[[Q:.*]] = lacis.ring : !lacis.ring<4, <64x32xbf16>, <1x64xf32>>
// CHECK:         %[[G:.*]] = lacis.ring : !lacis.ring<4, <64x16xbf16>, <1x64xf32>>
// CHECK:         } consumers 1
// CHECK:           %[[AT:.*]]:2 = lacis.acquire %[[PLACE:.*]] : !lacis.ring<4, <64x32xbf16>, <1x64xf32>>
// CHECK:           %[[S:.*]] = lacis.mma %{{.*}}, %[[AT]]#0 :
// CHECK:           %[[OF:.*]] = lacis.mma
// CHECK:           lacis.complete %[[S]]
// CHECK:           lacis.read_columns %[[AT]]#1
// CHECK:           %[[V:.*]] = lacis.mma %{{.*}} transposed into
// CHECK:           lacis.complete %[[OF]]
// CHECK:           %[[K:.*]] = lacis.mma %{{.*}}, %[[AT]]#0 transposed into
// CHECK:           lacis.complete %[[K]]
// CHECK:           lacis.release %[[PLACE]]
// CHECK:           lacis.complete %[[V]]
// CHECK-COUNT-2:   lacis.store_tile
#p = #lacis.format<(h, j, i) -> (h : batch, j floordiv 64 : dense, i floordiv 64 : compressed, j mod 64 : dense, i mod 64 : dense)>
func.func @gradients(%q: tensor<?x?x32xbf16> {lacis.name = "q", lacis.divisible = array<i64: 2, 64, 1>}, %k: tensor<?x?x32xbf16> {lacis.name = "k", lacis.divisible = array<i64: 2, 128, 1>}, %v: tensor<?x?x16xbf16> {lacis.name = "v", lacis.divisible = array<i64: 2, 128, 1>}, %lse: tensor<?x?xf32> {lacis.name = "lse", lacis.divisible = array<i64: 2, 64>}, %g: tensor<?x?x16xbf16> {lacis.name = "g", lacis.divisible = array<i64: 2, 64, 1>}, %delta: tensor<?x?xf32> {lacis.name = "delta", lacis.divisible = array<i64: 2, 64>}, %pattern: !lacis.pattern<?x?x?, #p> {lacis.name = "pattern", lacis.divisible = array<i64: 2, 128, 64>, lacis.full}) -> (tensor<?x?x32xbf16> {lacis.name = "out"}, tensor<?x?x16xbf16> {lacis.name = "out1"})
    attributes {lacis.kernel, lacis.steps = [], lacis.rolls = "tiles"} {
  %e1 = lacis.zeros %pattern : !lacis.pattern<?x?x?, #p> to tensor<?x?x?xf32, #p>
  %s = linalg.generic {indexing_maps = [affine_map<(h, j, i, d) -> (h, i, d)>, affine_map<(h, j, i, d) -> (h, j, d)>, affine_map<(h, j, i, d) -> (h, j, i)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "j", "i", "d"], lacis.name = "s"}
      ins(%q, %k : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>) outs(%e1 : tensor<?x?x?xf32, #p>) {
  ^bb0(%in1_0: bf16, %in1_1: bf16, %acc1: f32):
  %e2 = arith.extf %in1_0 : bf16 to f32
  %e3 = arith.extf %in1_1 : bf16 to f32
  %e4 = arith.mulf %e2, %e3 : f32
  %e5 = arith.addf %acc1, %e4 : f32
  linalg.yield %e5 : f32
  } -> tensor<?x?x?xf32, #p>
  %e6 = lacis.zeros %pattern : !lacis.pattern<?x?x?, #p> to tensor<?x?x?xf32, #p>
  %p = linalg.generic {indexing_maps = [affine_map<(h, j, i) -> (h, j, i)>, affine_map<(h, j, i) -> (h, i)>, affine_map<(h, j, i) -> (h, j, i)>], iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "j", "i"], lacis.name = "p"}
      ins(%s, %lse : tensor<?x?x?xf32, #p>, tensor<?x?xf32>) outs(%e6 : tensor<?x?x?xf32, #p>) {
  ^bb0(%in6_0: f32, %in6_1: f32, %acc6: f32):
  %e7 = arith.constant 0.25 : f32
  %e8 = arith.mulf %in6_0, %e7 : f32
  %e9 = arith.subf %e8, %in6_1 : f32
  %e10 = math.exp %e9 : f32
  linalg.yield %e10 : f32
  } -> tensor<?x?x?xf32, #p>
  %e11 = lacis.zeros %pattern : !lacis.pattern<?x?x?, #p> to tensor<?x?x?xf32, #p>
  %s1 = linalg.generic {indexing_maps = [affine_map<(h, j, i, e) -> (h, i, e)>, affine_map<(h, j, i, e) -> (h, j, e)>, affine_map<(h, j, i, e) -> (h, j, i)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "j", "i", "e"], lacis.name = "s1"}
      ins(%g, %v : tensor<?x?x16xbf16>, tensor<?x?x16xbf16>) outs(%e11 : tensor<?x?x?xf32, #p>) {
  ^bb0(%in11_0: bf16, %in11_1: bf16, %acc11: f32):
  %e12 = arith.extf %in11_0 : bf16 to f32
  %e13 = arith.extf %in11_1 : bf16 to f32
  %e14 = arith.mulf %e12, %e13 : f32
  %e15 = arith.addf %acc11, %e14 : f32
  linalg.yield %e15 : f32
  } -> tensor<?x?x?xf32, #p>
  %e16 = lacis.zeros %pattern : !lacis.pattern<?x?x?, #p> to tensor<?x?x?xf32, #p>
  %t = linalg.generic {indexing_maps = [affine_map<(h, j, i) -> (h, j, i)>, affine_map<(h, j, i) -> (h, j, i)>, affine_map<(h, j, i) -> (h, i)>, affine_map<(h, j, i) -> (h, j, i)>], iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "j", "i"], lacis.name = "t"}
      ins(%p, %s1, %delta : tensor<?x?x?xf32, #p>, tensor<?x?x?xf32, #p>, tensor<?x?xf32>) outs(%e16 : tensor<?x?x?xf32, #p>) {
  ^bb0(%in16_0: f32, %in16_1: f32, %in16_2: f32, %acc16: f32):
  %e17 = arith.subf %in16_1, %in16_2 : f32
  %e18 = arith.mulf %in16_0, %e17 : f32
  %e19 = arith.constant 0.25 : f32
  %e20 = arith.mulf %e18, %e19 : f32
  linalg.yield %e20 : f32
  } -> tensor<?x?x?xf32, #p>
  %e21 = arith.constant 0 : index
  %e22 = tensor.dim %t, %e21 : tensor<?x?x?xf32, #p>
  %e23 = arith.constant 1 : index
  %e24 = tensor.dim %t, %e23 : tensor<?x?x?xf32, #p>
  %e25 = tensor.empty(%e22, %e24) : tensor<?x?x32xf32>
  %e26 = arith.constant 0.0 : f32
  %e27 = linalg.fill ins(%e26 : f32) outs(%e25 : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  %a_wide = linalg.generic {indexing_maps = [affine_map<(h, j, d, i) -> (h, j, i)>, affine_map<(h, j, d, i) -> (h, i, d)>, affine_map<(h, j, d, i) -> (h, j, d)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "j", "d", "i"], lacis.name = "a_wide"}
      ins(%t, %q : tensor<?x?x?xf32, #p>, tensor<?x?x32xbf16>) outs(%e27 : tensor<?x?x32xf32>) {
  ^bb0(%in27_0: f32, %in27_1: bf16, %acc27: f32):
  %e28 = arith.extf %in27_1 : bf16 to f32
  %e29 = arith.mulf %in27_0, %e28 : f32
  %e30 = arith.addf %acc27, %e29 : f32
  linalg.yield %e30 : f32
  } -> tensor<?x?x32xf32>
  %e31 = arith.constant 0 : index
  %e32 = tensor.dim %a_wide, %e31 : tensor<?x?x32xf32>
  %e33 = arith.constant 1 : index
  %e34 = tensor.dim %a_wide, %e33 : tensor<?x?x32xf32>
  %e35 = tensor.empty(%e32, %e34) : tensor<?x?x32xbf16>
  %a = linalg.generic {indexing_maps = [affine_map<(h, j, d) -> (h, j, d)>, affine_map<(h, j, d) -> (h, j, d)>], iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "j", "d"], lacis.name = "a"}
      ins(%a_wide : tensor<?x?x32xf32>) outs(%e35 : tensor<?x?x32xbf16>) {
  ^bb0(%in35_0: f32, %acc35: bf16):
  %e36 = arith.truncf %in35_0 : f32 to bf16
  linalg.yield %e36 : bf16
  } -> tensor<?x?x32xbf16>
  %e37 = arith.constant 0 : index
  %e38 = tensor.dim %p, %e37 : tensor<?x?x?xf32, #p>
  %e39 = arith.constant 1 : index
  %e40 = tensor.dim %p, %e39 : tensor<?x?x?xf32, #p>
  %e41 = tensor.empty(%e38, %e40) : tensor<?x?x16xf32>
  %e42 = arith.constant 0.0 : f32
  %e43 = linalg.fill ins(%e42 : f32) outs(%e41 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %a1_wide = linalg.generic {indexing_maps = [affine_map<(h, j, e, i) -> (h, j, i)>, affine_map<(h, j, e, i) -> (h, i, e)>, affine_map<(h, j, e, i) -> (h, j, e)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "j", "e", "i"], lacis.name = "a1_wide"}
      ins(%p, %g : tensor<?x?x?xf32, #p>, tensor<?x?x16xbf16>) outs(%e43 : tensor<?x?x16xf32>) {
  ^bb0(%in43_0: f32, %in43_1: bf16, %acc43: f32):
  %e44 = arith.extf %in43_1 : bf16 to f32
  %e45 = arith.mulf %in43_0, %e44 : f32
  %e46 = arith.addf %acc43, %e45 : f32
  linalg.yield %e46 : f32
  } -> tensor<?x?x16xf32>
  %e47 = arith.constant 0 : index
  %e48 = tensor.dim %a1_wide, %e47 : tensor<?x?x16xf32>
  %e49 = arith.constant 1 : index
  %e50 = tensor.dim %a1_wide, %e49 : tensor<?x?x16xf32>
  %e51 = tensor.empty(%e48, %e50) : tensor<?x?x16xbf16>
  %a1 = linalg.generic {indexing_maps = [affine_map<(h, j, e) -> (h, j, e)>, affine_map<(h, j, e) -> (h, j, e)>], iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "j", "e"], lacis.name = "a1"}
      ins(%a1_wide : tensor<?x?x16xf32>) outs(%e51 : tensor<?x?x16xbf16>) {
  ^bb0(%in51_0: f32, %acc51: bf16):
  %e52 = arith.truncf %in51_0 : f32 to bf16
  linalg.yield %e52 : bf16
  } -> tensor<?x?x16xbf16>
  return %a, %a1 : tensor<?x?x32xbf16>, tensor<?x?x16xbf16>
}
