// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// Each statement of a round is an operation on tiles: a sum of products is mma, other reductions are of rows, arithmetic is
// a map; what follows from rows alone has one column. Both roles run the loops of the nest, the producer with the boxes.
// A product of what a round made waits for the next, and runs beside its first; parts of sums along rows stay with threads.
// CHECK-LABEL: func.func @attend(
// CHECK:         lacis.loop "h"
// CHECK:           lacis.loop "i0"
// CHECK:             %[[Q:.*]] = lacis.ring : !lacis.ring<1, <64x32xbf16>>
// CHECK:             %[[K:.*]] = lacis.ring : !lacis.ring<4, <64x32xbf16>>
// CHECK:             %[[V:.*]] = lacis.ring : !lacis.ring<4, <64x16xbf16>>
// CHECK:             lacis.roles producer {
// CHECK:               lacis.load_tile %arg0[
// CHECK:               lacis.level_loop "j0"
// CHECK:                 lacis.load_tile %arg1[
// CHECK:                 lacis.load_tile %arg2[
// CHECK:             } consumers 1
// CHECK:               lacis.splat %{{.*}} : f32 to !lacis.acc<64x1xf32>
// CHECK:               %[[L:.*]] = lacis.splat %{{.*}} : f32 to !lacis.acc<64x4xf32>
// CHECK:               lacis.loop "j0"<phase "first">
// CHECK:                 lacis.loop "j0" {{.*}} iter({{.*}} %[[A:arg[0-9]+]] = {{.*}}, %[[O:arg[0-9]+]] = {{.*}}, %{{.*}} = {{.*}}) ->
// CHECK:                   %[[X:.*]] = lacis.mma %{{.*}} into !lacis.acc<64x64xf32>
// CHECK:                   %[[Y:.*]] = lacis.mma %[[A]], %{{.*}} transposed into %[[O]]
// CHECK:                   %[[S:.*]] = lacis.complete %[[X]]
// CHECK:                   %[[N:.*]] = lacis.reduce_rows "max" %[[S]] onto
// CHECK:                   %[[R:.*]] = lacis.map %{{.*}}, %[[N]]
// CHECK:                   math.exp2
// CHECK:                   %[[P:.*]] = lacis.map %[[S]], %{{.*}}
// CHECK:                   lacis.reduce_rows "sum" %[[P]] onto {{.*}} -> !lacis.acc<64x4xf32>
// CHECK:                   %[[T:.*]] = lacis.complete %[[Y]]
// CHECK:                   arith.truncf
// CHECK:                   lacis.map %[[T]], %[[R]]
// CHECK:                 lacis.mma {{.*}} transposed
// CHECK:               lacis.reduce_rows "sum" {{.*}} : !lacis.acc<64x4xf32> -> !lacis.acc<64x1xf32>
// CHECK:               arith.divf
// CHECK:               lacis.store_tile
#p = #lacis.format<(h, i, j) -> (h : batch, i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @attend(%q: tensor<?x?x32xbf16> {lacis.name = "q", lacis.divisible = array<i64: 2, 64, 1>}, %k: tensor<?x?x32xbf16> {lacis.name = "k", lacis.divisible = array<i64: 2, 128, 1>}, %v: tensor<?x?x16xbf16> {lacis.name = "v", lacis.divisible = array<i64: 2, 128, 1>}, %pattern: !lacis.pattern<?x?x?, #p> {lacis.name = "pattern", lacis.divisible = array<i64: 2, 64, 128>, lacis.full}) -> (tensor<?x?x16xbf16> {lacis.name = "out"})
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
  %e6 = arith.constant 0 : index
  %e7 = tensor.dim %s, %e6 : tensor<?x?x?xf32, #p>
  %e8 = arith.constant 1 : index
  %e9 = tensor.dim %s, %e8 : tensor<?x?x?xf32, #p>
  %e10 = tensor.empty(%e7, %e9) : tensor<?x?xf32>
  %e11 = arith.constant 0xFF800000 : f32
  %e12 = linalg.fill ins(%e11 : f32) outs(%e10 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i)>], iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "j"], lacis.name = "m"}
      ins(%s : tensor<?x?x?xf32, #p>) outs(%e12 : tensor<?x?xf32>) {
  ^bb0(%in12_0: f32, %acc12: f32):
  %e13 = arith.maximumf %acc12, %in12_0 : f32
  linalg.yield %e13 : f32
  } -> tensor<?x?xf32>
  %e14 = lacis.zeros %pattern : !lacis.pattern<?x?x?, #p> to tensor<?x?x?xf32, #p>
  %p = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i)>, affine_map<(h, i, j) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "i", "j"], lacis.name = "p"}
      ins(%s, %m : tensor<?x?x?xf32, #p>, tensor<?x?xf32>) outs(%e14 : tensor<?x?x?xf32, #p>) {
  ^bb0(%in14_0: f32, %in14_1: f32, %acc14: f32):
  %e15 = arith.constant 0xFF800000 : f32
  %e16 = arith.cmpf oeq, %in14_1, %e15 : f32
  %e17 = arith.constant 0.0 : f32
  %e18 = arith.select %e16, %e17, %in14_1 : f32
  %e19 = arith.subf %in14_0, %e18 : f32
  %e20 = math.exp %e19 : f32
  linalg.yield %e20 : f32
  } -> tensor<?x?x?xf32, #p>
  %e21 = arith.constant 0 : index
  %e22 = tensor.dim %p, %e21 : tensor<?x?x?xf32, #p>
  %e23 = arith.constant 1 : index
  %e24 = tensor.dim %p, %e23 : tensor<?x?x?xf32, #p>
  %e25 = tensor.empty(%e22, %e24) : tensor<?x?xf32>
  %e26 = arith.constant 0.0 : f32
  %e27 = linalg.fill ins(%e26 : f32) outs(%e25 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %l = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i)>], iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "j"], lacis.name = "l"}
      ins(%p : tensor<?x?x?xf32, #p>) outs(%e27 : tensor<?x?xf32>) {
  ^bb0(%in27_0: f32, %acc27: f32):
  %e28 = arith.addf %acc27, %in27_0 : f32
  linalg.yield %e28 : f32
  } -> tensor<?x?xf32>
  %e29 = arith.constant 0 : index
  %e30 = tensor.dim %p, %e29 : tensor<?x?x?xf32, #p>
  %e31 = arith.constant 1 : index
  %e32 = tensor.dim %p, %e31 : tensor<?x?x?xf32, #p>
  %e33 = tensor.empty(%e30, %e32) : tensor<?x?x16xf32>
  %e34 = arith.constant 0.0 : f32
  %e35 = linalg.fill ins(%e34 : f32) outs(%e33 : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(h, i, e, j) -> (h, i, j)>, affine_map<(h, i, e, j) -> (h, j, e)>, affine_map<(h, i, e, j) -> (h, i, e)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "e", "j"], lacis.name = "a"}
      ins(%p, %v : tensor<?x?x?xf32, #p>, tensor<?x?x16xbf16>) outs(%e35 : tensor<?x?x16xf32>) {
  ^bb0(%in35_0: f32, %in35_1: bf16, %acc35: f32):
  %e36 = arith.extf %in35_1 : bf16 to f32
  %e37 = arith.mulf %in35_0, %e36 : f32
  %e38 = arith.addf %acc35, %e37 : f32
  linalg.yield %e38 : f32
  } -> tensor<?x?x16xf32>
  %e39 = arith.constant 0 : index
  %e40 = tensor.dim %a, %e39 : tensor<?x?x16xf32>
  %e41 = arith.constant 1 : index
  %e42 = tensor.dim %a, %e41 : tensor<?x?x16xf32>
  %e43 = tensor.empty(%e40, %e42) : tensor<?x?x16xbf16>
  %o = linalg.generic {indexing_maps = [affine_map<(h, i, e) -> (h, i, e)>, affine_map<(h, i, e) -> (h, i)>, affine_map<(h, i, e) -> (h, i, e)>], iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "i", "e"], lacis.name = "o"}
      ins(%a, %l : tensor<?x?x16xf32>, tensor<?x?xf32>) outs(%e43 : tensor<?x?x16xbf16>) {
  ^bb0(%in43_0: f32, %in43_1: f32, %acc43: bf16):
  %e44 = arith.constant 0.0 : f32
  %e45 = arith.cmpf oeq, %in43_1, %e44 : f32
  %e46 = arith.divf %in43_0, %in43_1 : f32
  %e47 = arith.select %e45, %e44, %e46 : f32
  %e48 = arith.truncf %e47 : f32 to bf16
  linalg.yield %e48 : bf16
  } -> tensor<?x?x16xbf16>
  return %o : tensor<?x?x16xbf16>
}
