// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=target -o - | FileCheck %s --check-prefix=LAUNCHES
// LAUNCHES: step = #lacis.tile_schedule<columns = 256, swizzle_group = 4, period = 16, split = 8,
// LAUNCHES: launches = [{{.*}}entry = "product_0"{{.*}}entry = "product_1"

// Up to eight tiles of tokens long panels are cut: parts are kept, and a nest behind adds them up.
// CHECK-LABEL: func.func @product(
// CHECK:         %[[PAIRS:.*]] = lacis.regroup
// CHECK:         %[[LISTS:.*]] = lacis.balance #lacis.tile_schedule<columns = 256, swizzle_group = 4, period = 16, split = 8, cost = <{{.*}}>> of %[[PAIRS]] :
// CHECK:         %[[KEPT:.*]] = lacis.workspace
// CHECK:         lacis.loop "n"
// CHECK:           %[[FEW:.*]] = arith.cmpi ule
// CHECK:           } consumers 2
// CHECK:             lacis.level_loop "i00" %[[LISTS]][2]
// CHECK:               lacis.level_loop "b01" %[[LISTS]][3]
// CHECK:                 lacis.level_loop "b02" %[[LISTS]][4] {{.*}} (%{{.*}}, %[[FIRST:.*]]) iter
// CHECK:                   lacis.level_loop "b03" %[[LISTS]][5] {{.*}} (%{{.*}}, %[[COUNT:.*]]) iter
// CHECK:                     lacis.level_loop "b04" %[[LISTS]][6]
// CHECK:                       lacis.level_loop "b05" %[[LISTS]][7]
// CHECK:                         lacis.level_loop "b06" %[[LISTS]][8] {{.*}} (%{{.*}}, %[[SLOT:.*]]) iter
// CHECK:                       lacis.loop "j0" %{{.*}} to %[[COUNT]]
// CHECK:                         lacis.presence %[[PAIRS]][2]
// CHECK:                         lacis.mma
// CHECK:                       arith.cmpi slt, %[[SLOT]]
// CHECK:                       lacis.store_tile
// CHECK:                       } else {
// CHECK:                       lacis.store_acc %{{.*}} to %[[KEPT]]
// CHECK:         lacis.loop "n"
// CHECK:           } consumers 2
// CHECK:             lacis.level_loop "i00" %[[LISTS]][2]
// CHECK:               lacis.level_loop "b04" %[[LISTS]][6] {{.*}} (%{{.*}}, %[[PART:.*]]) :
// CHECK:               lacis.level_loop "b05" %[[LISTS]][7] {{.*}} (%{{.*}}, %[[PARTS:.*]]) :
// CHECK:                 %[[WHOSE:.*]] = arith.remui %{{.*}}, %[[PARTS]]
// CHECK:                 arith.cmpi eq, %[[WHOSE]], %[[PART]]
// CHECK:                 lacis.load_acc %[[KEPT]]
// CHECK:                 lacis.loop "part"
// CHECK:                   lacis.load_acc %[[KEPT]] at %{{.*}} onto
// CHECK:                 lacis.store_tile

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @product(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.divisible = array<i64: 64, 8>},
                   %x: tensor<?x?xbf16> {lacis.name = "x"}) -> tensor<?x?xbf16> attributes {lacis.steps = [#lacis.split<loop = "i0", factor = 2>, #lacis.split<loop = "b", factor = 256>,
  #lacis.reorder<loops = ["i00", "b0", "i01", "i1", "b1"]>,
  #lacis.regroup<operand = "w", layout = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link, i mod 64 : dense, j mod 64 : dense)>>,
  #lacis.balance<loop = "b0", raster = 4, groups = 16, cut = 8>, #lacis.bind<loop = "i01", unit = "warpgroup">,
  #lacis.stage<operand = "w", place = "shared">, #lacis.stage<operand = "x", place = "shared">,
  #lacis.pipeline<loop = "j0", stages = 4>, #lacis.tensorize<loops = ["j1", "i1", "b1"]>]} {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %x, %c0 : tensor<?x?xbf16>
  %i = tensor.dim %w, %c0 : tensor<?x?xbf16, #bsr>
  %empty = tensor.empty(%b, %i) : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>,
                                          affine_map<(b, i, j) -> (b, i)>],
                         iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xbf16, #bsr>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%v: bf16, %e: bf16, %acc: f32):
    %vw = arith.extf %v : bf16 to f32
    %ew = arith.extf %e : bf16 to f32
    %product = arith.mulf %vw, %ew : f32
    %next = arith.addf %acc, %product : f32
    linalg.yield %next : f32
  } -> tensor<?x?xf32>
  %target = tensor.empty(%b, %i) : tensor<?x?xbf16>
  %result = linalg.generic {indexing_maps = [affine_map<(b, i) -> (b, i)>, affine_map<(b, i) -> (b, i)>],
                            iterator_types = ["parallel", "parallel"], lacis.loops = ["b", "i"]}
      ins(%sum : tensor<?x?xf32>) outs(%target : tensor<?x?xbf16>) {
  ^bb0(%value: f32, %old: bf16):
    %rounded = arith.truncf %value : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16>
  return %result : tensor<?x?xbf16>
}
