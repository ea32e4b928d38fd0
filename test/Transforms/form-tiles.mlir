// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s
// RUN: lacis-opt %s -lacis-to-loops="target=cuda arch=sm_90a" | lacis-opt -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s
// RUN: sed 's/-> tensor<?x?xbf16> {/-> tensor<?x?xbf16> attributes {lacis.plain} {/' %s | lacis-compile - --target=cuda:sm_90a --emit=tiles -o - | FileCheck %s --check-prefix=PLAIN
// RUN: lacis-compile %s --target=cuda:sm_80 --emit=tiles -o - | FileCheck %s --check-prefix=LARGE
// RUN: lacis-compile %s --target=cuda:sm_89 --emit=tiles -o - | FileCheck %s --check-prefix=SMALL
// RUN: sed 's/(b, i, j) -> (b, j)/(b, i, j) -> (j, b)/; s/%b = tensor.dim %x, %c0/%c1 = arith.constant 1 : index %b = tensor.dim %x, %c1/; s/"x"}/"x", lacis.divisible = array<i64: 8, 8>}/' %s | lacis-compile - --target=cuda:sm_90a --emit=tiles -o - | FileCheck %s --check-prefix=FIRST
// PLAIN-NOT: lacis.mma
// The rows of x lie across the contraction: lines of 128 bytes, side by side, which one load brings.
// FIRST:     lacis.ring : !lacis.ring<4, <4x64x64xbf16>, <2x64x64xbf16>>
// FIRST:     lacis.load_tile {{.*}}] to !lacis.tile<4x64x64xbf16>
// FIRST:     lacis.mma {{.*}}, %{{.*}}[%{{.*}} : index] transposed into
// LARGE:     lacis.ring : !lacis.ring<4, <192x64xbf16>, <2x64x64xbf16>>
// SMALL:     lacis.ring : !lacis.ring<3, <128x64xbf16>, <2x64x64xbf16>>

// The default schedule of sm_90a turns a product with stored blocks of 64 into roles over pairs of block rows.
// CHECK-LABEL: func.func @product(
// CHECK:         %[[TILES:.*]] = arith.ceildivui
// CHECK:         %[[PAIRS:.*]] = lacis.regroup #lacis.layout<format = <(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link
// CHECK:         %[[LISTS:.*]] = lacis.balance #lacis.tile_schedule<columns = 256, swizzle_group = 4, period = 16, {{.*}}> of %[[PAIRS]]
// CHECK:         lacis.loop "n"
// CHECK:           lacis.ring : !lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>
// CHECK:           lacis.roles producer {
// CHECK:             lacis.level_loop "i00" %[[LISTS]][2]
// CHECK:               lacis.level_loop "b01" %[[LISTS]][3]
// CHECK:                 lacis.level_loop "j0" %[[PAIRS]][1]
// CHECK:                   lacis.acquire
// CHECK:                   lacis.load_tile %{{.*}} : tensor<?x?xbf16>[index, index] to !lacis.tile<256x64xbf16>
// CHECK:                   lacis.locate %[[PAIRS]][3]
// CHECK:                   lacis.load_tile {{.*}} to !lacis.tile<2x64x64xbf16>
// CHECK:                   lacis.release
// CHECK:           } consumers 2
// CHECK:                 lacis.origin %[[PAIRS]]
// CHECK:                 lacis.splat {{.*}} to !lacis.acc<64x256xf32>
// CHECK:                 lacis.level_loop "j0" %[[PAIRS]][1]
// CHECK:                   lacis.presence %[[PAIRS]][2]
// CHECK:                   lacis.mma
// CHECK:                 lacis.complete
// CHECK:                 lacis.store_tile {{.*}} transposed
// CHECK:         bind<block.x>

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @product(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.divisible = array<i64: 64, 8>},
                   %x: tensor<?x?xbf16> {lacis.name = "x"}) -> tensor<?x?xbf16> {
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
