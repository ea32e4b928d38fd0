// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=tiles -o - | FileCheck %s
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=buffers -o - | FileCheck %s --check-prefix=ROWS
// RUN: sed 's/j floordiv 128 mod 2 : dense/j floordiv 128 mod 2 : compressed/' %s | lacis-compile - --target=cuda:sm_90a --emit=loops -o - | FileCheck %s --check-prefix=BELOW
// RUN: sed 's/j floordiv 128 mod 2/j floordiv 256 mod 1/; s/j mod 128/j mod 256/' %s | lacis-opt -lacis-linalg-to-loops | FileCheck %s --check-prefix=ONE

// More than two levels below the positions are dense: the tiles of a position lie in levels of their own. Consumers have a
// row of them each, and rounds go over those of a row, and over the two parts of each.
// CHECK-LABEL: func.func @product(
// CHECK:         lacis.ring : !lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>
// CHECK:         lacis.roles producer {
// CHECK:           lacis.level_loop "j0" %arg0[1] at %{{.*}} (%[[P:.*]], %{{.*}}) iter
// CHECK:             lacis.loop "j10" %[[TILE:.*]] to %c2
// CHECK:               lacis.loop "j110" %{{.*}} to %c2
// CHECK:                 lacis.load_tile %arg1
// CHECK:                 %[[ROW:.*]] = lacis.locate %arg0[2] at %[[P]](%c0
// CHECK:                 %[[BLOCK:.*]] = lacis.locate %arg0[3] at %[[ROW]](%[[TILE]])
// CHECK:                 lacis.load_tile %arg0[%[[BLOCK]], %{{.*}}, %{{.*}}]
// CHECK:         } consumers 2 (
// CHECK:           lacis.level_loop "j0"
// CHECK:             lacis.loop "j10"
// CHECK:               lacis.loop "j110"
// CHECK:                 lacis.mma
// A position has four blocks of 64 rows.
// ROWS:          lacis.load_tile {{.*}} {shape = [#lacis.size<arg {{[0-9]+}} * 256>, #lacis.size<128>]}
// Tiles that a position need not have, in levels of their own: an execution layout has them side by side.
// BELOW:         lacis.regroup = #lacis.layout<format = <(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link, i mod 64 : dense, j mod 64 : dense)>>
// BELOW:         lacis.level_loop "j0" %arg0[1]
// BELOW:           lacis.level_loop "j10" %arg0[3]
// A level of a single coordinate has a loop with a name of its own.
// ONE:           lacis.level_loop "j0" %arg0[1]
// ONE:             lacis.loop "j10" %{{.*}} to %c1
// ONE:               lacis.loop "j11" %{{.*}} to %c256

#bsr = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 256 : compressed, i floordiv 64 mod 2 : dense, j floordiv 128 mod 2 : dense, i mod 64 : dense, j mod 128 : dense)>
func.func @product(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.divisible = array<i64: 128, 256>},
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
