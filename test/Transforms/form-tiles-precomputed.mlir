// SPDX-License-Identifier: Apache-2.0
// RUN: sed 's/STEPS//' %s | lacis-opt -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s
// RUN: sed 's/STEPS//' %s | lacis-opt -lacis-to-buffers="target=cuda arch=sm_80" | FileCheck %s --check-prefix=LEVELS
// RUN: sed 's/STEPS//; s/attributes {/attributes {lacis.checked, /' %s | lacis-opt -lacis-to-buffers="target=cuda arch=sm_90a" | FileCheck %s --check-prefix=CHECKED
// RUN: sed 's/STEPS/#lacis.precompute<part = "rest">, #lacis.split<loop = "i0", factor = 2>, #lacis.split<loop = "b", factor = 256>, #lacis.reorder<loops = ["i00", "b0", "i01", "i1", "b1"]>, #lacis.regroup<operand = "w", layout = #pairs>, #lacis.balance<loop = "b0", raster = 4, groups = 16>, #lacis.bind<loop = "i01", unit = "warpgroup">, #lacis.stage<operand = "w", place = "shared">, #lacis.stage<operand = "x", place = "shared">, #lacis.pipeline<loop = "blocks.j0", stages = 4>, #lacis.tensorize<loops = ["blocks.j1", "i1", "b1"]>/' %s | not lacis-opt -lacis-to-tiles="target=cuda arch=sm_90a" 2>&1 | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: error: tiles: what is precomputed lies in tiles of 64 rows and 256 columns, row by row, not in #lacis.format<(l0, l1) -> (l0 : dense, l1 : dense)>

// By default the blocked part of a sum goes to tiles; the rest is summed up before, to where accumulators begin with it.
// A panel that lacks rows begins with some other tile, which nobody stores.
// CHECK-LABEL: func.func @product(
// CHECK:         %[[KEPT:.*]] = lacis.workspace{{.*}} : tensor<?x?xf32, #lacis.format<(b, i) -> (b floordiv 256 : dense, i floordiv 64 : dense, i mod 64 : dense, b mod 256 : dense)>>
// CHECK:         lacis.loop "b0"<part "rest">
// CHECK:           lacis.level_loop "j"<part "rest">
// CHECK:             lacis.write %{{.*}} to %[[KEPT]]
// CHECK:         lacis.ring : !lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>
// CHECK:         lacis.roles producer {
// CHECK-NOT:       lacis.load_acc
// CHECK:         } consumers 2
// CHECK:           %[[GROUP:.*]] = lacis.origin
// CHECK:           %[[ROWS:.*]] = arith.subi %[[COUNT:.*]], %c1
// CHECK:           %[[DOWN:.*]] = arith.minui %[[GROUP]], %[[ROWS]]
// CHECK:           %[[ACROSS:.*]] = arith.muli %{{.*}}, %[[COUNT]]
// CHECK:           %[[PLACE:.*]] = arith.addi %[[ACROSS]], %[[DOWN]]
// CHECK:           %[[BEGIN:.*]] = lacis.load_acc %[[KEPT]] at %[[PLACE]]
// CHECK:           lacis.level_loop "j0"<part "blocks"> {{.*}} = %[[BEGIN]])
// CHECK:             lacis.mma
// CHECK:           lacis.store_tile
// LEVELS:        lacis.load_acc %{{.*}} at %{{.*}} : !llvm.ptr, i32 to !lacis.acc<64x192xf32>
// A checked kernel takes the first tile where there is none of that number.
// CHECKED:         %[[OWN:.*]] = arith.select %{{.*}} : i32
// CHECKED:         lacis.load_acc %{{.*}} at %[[OWN]] : !llvm.ptr, i32 to !lacis.acc<64x256xf32>

#pairs = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link, i mod 64 : dense, j mod 64 : dense)>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<blocks = #bsr when nnz(i floordiv 64, j floordiv 64) ge 1024, rest = #csr>
func.func @product(%w: tensor<?x?xbf16, #sum> {lacis.name = "w", lacis.divisible = array<i64: 64, 8>},
                   %x: tensor<?x?xbf16> {lacis.name = "x"}) -> tensor<?x?xbf16>
    attributes {lacis.steps = [STEPS]} {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %x, %c0 : tensor<?x?xbf16>
  %i = tensor.dim %w, %c0 : tensor<?x?xbf16, #sum>
  %empty = tensor.empty(%b, %i) : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>,
                                          affine_map<(b, i, j) -> (b, i)>],
                         iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xbf16, #sum>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32>) {
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
  ^bb0(%value: f32, %none: bf16):
    %rounded = arith.truncf %value : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16>
  return %result : tensor<?x?xbf16>
}
