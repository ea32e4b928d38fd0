// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// A residual arrives in stages of the ring after the steps, one for each 64 rows; a consumer adds it to its own rows
// before it stores, and lets the stages of the other pass.
// CHECK-LABEL: func.func @product(
// CHECK:           lacis.ring : !lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>
// CHECK:           lacis.roles producer {
// CHECK:                 lacis.level_loop "j0"
// CHECK:                 lacis.loop "part" %{{.*}} to %c2
// CHECK:                   %[[GROUP:.*]] = lacis.origin
// CHECK:                   %[[ROW:.*]] = arith.muli %[[GROUP]], %c64
// CHECK:                   lacis.acquire
// CHECK:                   lacis.load_tile %{{.*}}, %[[ROW]]] to %{{.*}} to !lacis.tile<256x64xbf16>
// CHECK:                   lacis.release
// CHECK:           } consumers 2 (%[[CONSUMER:.*]]: index)
// CHECK:                 lacis.level_loop "j0"
// CHECK:                   lacis.mma
// CHECK:                 %[[SUM:.*]]:2 = lacis.complete
// CHECK:                 lacis.loop "part" %{{.*}} to %[[CONSUMER]] iter(%{{.*}} = %[[SUM]]#0)
// CHECK:                   lacis.acquire
// CHECK-NEXT:              lacis.release
// CHECK:                 lacis.acquire
// CHECK:                 %[[OLD:.*]] = lacis.read_tile {{.*}} transposed
// CHECK:                 %[[ALL:.*]] = lacis.map %[[SUM]]#1, %[[OLD]]
// CHECK:                   arith.maximumf
// CHECK:                   arith.addf
// CHECK:                 lacis.store_tile %[[ALL]]
// CHECK:                 lacis.release
// CHECK:                 %[[LEFT:.*]] = arith.subi %c1{{.*}}, %[[CONSUMER]]
// CHECK:                 lacis.loop "part" %{{.*}} to %[[LEFT]]
// CHECK:         bind<block.x>

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @product(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.divisible = array<i64: 64, 8>},
                   %x: tensor<?x?xbf16> {lacis.name = "x"},
                   %old: tensor<?x?xbf16> {lacis.name = "residual"}) -> tensor<?x?xbf16> {
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
  %result = linalg.generic {indexing_maps = [affine_map<(b, i) -> (b, i)>, affine_map<(b, i) -> (b, i)>,
                                             affine_map<(b, i) -> (b, i)>],
                            iterator_types = ["parallel", "parallel"], lacis.loops = ["b", "i"]}
      ins(%sum, %old : tensor<?x?xf32>, tensor<?x?xbf16>) outs(%target : tensor<?x?xbf16>) {
  ^bb0(%value: f32, %before: bf16, %none: bf16):
    %active = arith.maximumf %value, %zero : f32
    %wide = arith.extf %before : bf16 to f32
    %all = arith.addf %active, %wide : f32
    %rounded = arith.truncf %all : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16>
  return %result : tensor<?x?xbf16>
}
