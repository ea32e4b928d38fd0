// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s
// RUN: sed 's/-> tensor<?x?xbf16> {/-> tensor<?x?xbf16> attributes {lacis.steps = #steps} {/' %s | not lacis-opt - -lacis-to-tiles="target=cuda arch=sm_90a" 2>&1 | FileCheck %s --check-prefix=COPIED
// COPIED: error: tiles: a dense matrix is read where it lies; let the layout link to the values

// A dense matrix goes the same way: its tiles are boxes of the matrix, and every step has both.
// CHECK-LABEL: func.func @product(
// CHECK:         %[[LAYOUT:.*]] = lacis.regroup {{.*}}i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link
// CHECK:         lacis.balance #lacis.tile_schedule<columns = 256, {{.*}}> of %[[LAYOUT]]
// CHECK:           lacis.ring : !lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>
// CHECK:           lacis.roles producer {
// CHECK:                 lacis.level_loop "j" %[[LAYOUT]][1]
// CHECK:                   %[[J:.*]] = arith.muli %{{.*}}, %c64
// CHECK:                   lacis.acquire
// CHECK:                   lacis.load_tile %{{.*}}, %[[J]]] to %{{.*}} to !lacis.tile<256x64xbf16>
// CHECK:                   %[[DEPTH:.*]] = arith.muli %{{.*}}, %c64
// CHECK:                   %[[SOME:.*]] = arith.cmpi slt, %[[I:.*]], %
// CHECK:                   scf.if %[[SOME]] {
// CHECK:                     lacis.load_tile %{{.*}}[%c0{{.*}}, %[[I]], %[[DEPTH]]] to {{.*}} to !lacis.tile<2x64x64xbf16>
// CHECK-NOT:               lacis.locate
// CHECK:           } consumers 2
// CHECK-NOT:               lacis.presence
// CHECK:                   lacis.mma
// CHECK:                 lacis.store_tile {{.*}} transposed
// CHECK:         bind<block.x>

#copied = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, i mod 64 : dense, j mod 64 : dense)>
#steps = [#lacis.split<loop = "i", factor = 128>, #lacis.split<loop = "i1", factor = 64>, #lacis.split<loop = "b", factor = 256>,
          #lacis.reorder<loops = ["i0", "b0", "i10", "i11", "b1"]>, #lacis.regroup<operand = "w", layout = #copied>,
          #lacis.balance<loop = "b0", raster = 4, groups = 16>, #lacis.bind<loop = "i10", unit = "warpgroup">,
          #lacis.stage<operand = "w", place = "shared">, #lacis.stage<operand = "x", place = "shared">,
          #lacis.pipeline<loop = "j", stages = 4>, #lacis.tensorize<loops = ["i11", "b1"]>]
#matrix = #lacis.format<(i, j) -> (i : dense, j : dense)>
func.func @product(%w: tensor<?x?xbf16, #matrix> {lacis.name = "w", lacis.divisible = array<i64: 8, 8>},
                   %x: tensor<?x?xbf16> {lacis.name = "x"}) -> tensor<?x?xbf16> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %x, %c0 : tensor<?x?xbf16>
  %i = tensor.dim %w, %c0 : tensor<?x?xbf16, #matrix>
  %empty = tensor.empty(%b, %i) : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>,
                                          affine_map<(b, i, j) -> (b, i)>],
                         iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xbf16, #matrix>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32>) {
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
