// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// Rows may end inside of a tile: its box has zeros behind them, and what is stored ends with them, so no row is guarded. In
// loops a row behind the last one would compute what that does.
// CHECK-LABEL: func.func @sums(
// CHECK-NOT:     arith.minsi
// CHECK-NOT:     scf.if
// CHECK:         lacis.roles
// CHECK:           lacis.load_tile %arg0[%{{.*}}, %{{.*}}, %{{.*}}] to %{{.*}} : tensor<?x?x32xbf16>
// CHECK:         } consumers 1
// CHECK:           lacis.store_tile %{{.*}} to %arg4[%{{.*}}, %{{.*}}, %{{.*}}] {{.*}} tensor<?x?x16xf32>
// CHECK-NOT:     arith.minsi
// CHECK-NOT:     scf.if
#p = #lacis.format<(h, i, j) -> (h : batch, i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#of_row = affine_map<(h, i, j, d) -> (h, i, d)>
#of_column = affine_map<(h, i, j, d) -> (h, j, d)>
func.func @sums(%q: tensor<?x?x32xbf16> {lacis.name = "q", lacis.divisible = array<i64: 2, 4, 1>},
                %k: tensor<?x?x32xbf16> {lacis.name = "k", lacis.divisible = array<i64: 2, 128, 1>},
                %v: tensor<?x?x16xbf16> {lacis.name = "v", lacis.divisible = array<i64: 2, 128, 1>},
                %pattern: !lacis.pattern<?x?x?, #p> {lacis.name = "pattern", lacis.divisible = array<i64: 2, 4, 128>, lacis.full})
    -> (tensor<?x?x16xf32> {lacis.name = "out"}) attributes {lacis.kernel, lacis.steps = [], lacis.rolls = "tiles"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %zeros = lacis.zeros %pattern : !lacis.pattern<?x?x?, #p> to tensor<?x?x?xf32, #p>
  %s = linalg.generic {indexing_maps = [#of_row, #of_column, affine_map<(h, i, j, d) -> (h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "j", "d"], lacis.name = "s"}
      ins(%q, %k : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>) outs(%zeros : tensor<?x?x?xf32, #p>) {
  ^bb0(%x: bf16, %y: bf16, %sum: f32):
    %x32 = arith.extf %x : bf16 to f32
    %y32 = arith.extf %y : bf16 to f32
    %product = arith.mulf %x32, %y32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<?x?x?xf32, #p>
  %heads = tensor.dim %q, %c0 : tensor<?x?x32xbf16>
  %rows = tensor.dim %q, %c1 : tensor<?x?x32xbf16>
  %empty = tensor.empty(%heads, %rows) : tensor<?x?x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?x16xf32>) -> tensor<?x?x16xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(h, i, e, j) -> (h, i, j)>, affine_map<(h, i, e, j) -> (h, j, e)>,
      affine_map<(h, i, e, j) -> (h, i, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "e", "j"], lacis.name = "a"}
      ins(%s, %v : tensor<?x?x?xf32, #p>, tensor<?x?x16xbf16>) outs(%init : tensor<?x?x16xf32>) {
  ^bb0(%x: f32, %y: bf16, %sum: f32):
    %y32 = arith.extf %y : bf16 to f32
    %product = arith.mulf %x, %y32 : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<?x?x16xf32>
  return %a : tensor<?x?x16xf32>
}
