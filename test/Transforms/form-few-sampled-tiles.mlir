// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// Where few blocks of 32 are stored, two of one column at a time are gathered from panels of 512 rows; a share has up to
// eighteen such pairs within 640 columns, and says how many: a shorter one multiplies less. The sums of some are cut.
// CHECK-LABEL: func.func @few(
// CHECK:         %[[PAIRS:.*]] = lacis.regroup {{.*}}i floordiv 512 : dense, j floordiv 32 : compressed<unique=false>, (i floordiv 32 mod 16, j floordiv 32 mod 1) : bitmap, link{{.*}}capacity = 2>
// CHECK:         lacis.balance #lacis.segment_schedule<length = 18, span = 640, split = 8, {{.*}}> of %[[PAIRS]] :
// CHECK:           lacis.ring : !lacis.ring<3, <10x32x64xbf16>, <8x32x64xbf16>>
// CHECK-COUNT-18:    lacis.load_tile
// CHECK:           } consumers 3
// CHECK:             lacis.level_loop "i0_j005" {{.*}}[7]
// CHECK:               lacis.mma_gathered %[[DY:.*]][%{{[^,]*}}, %{{[^,]*}}], %{{.*}}[%{{[^,]*}}] into %{{.*}} into !lacis.acc<64x32xf32>
// CHECK:               lacis.store_blocks {{.*}}[%{{.*}}, %{{.*}}] : !lacis.acc<64x32xf32>
// CHECK:               lacis.store_acc {{.*}} : !lacis.acc<64x32xf32>
// CHECK:               lacis.mma_gathered {{.*}} into !lacis.acc<64x64xf32>
// CHECK:               lacis.mma_gathered {{.*}} into !lacis.acc<64x96xf32>
// CHECK:               lacis.mma_gathered {{.*}} into !lacis.acc<64x128xf32>
#arg0 = #lacis.format<(i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, i mod 32 : dense, j mod 32 : dense)>
func.func @few(%arg0: !lacis.pattern<?x?, #arg0> {lacis.name = "0", lacis.divisible = array<i64: 128, 128>, lacis.eighths = 1 : i64}, %arg1: tensor<?x?xbf16> {lacis.name = "1", lacis.divisible = array<i64: 32, 128>}, %out: tensor<?x?xbf16> {lacis.name = "out", lacis.divisible = array<i64: 32, 128>}) -> (tensor<?x?xbf16, #arg0> {lacis.name = "0"})
    attributes {lacis.kernel, lacis.steps = []} {
  %init = lacis.zeros %arg0 : !lacis.pattern<?x?, #arg0> to tensor<?x?xf32, #arg0>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j, b) -> (b, j)>, affine_map<(i, j, b) -> (b, i)>, affine_map<(i, j, b) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["i", "j", "b"]}
      ins(%arg1, %out : tensor<?x?xbf16>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32, #arg0>) {
  ^bb0(%in0: bf16, %in1: bf16, %acc: f32):
    %wide0 = arith.extf %in0 : bf16 to f32
    %wide1 = arith.extf %in1 : bf16 to f32
    %product1 = arith.mulf %wide0, %wide1 : f32
    %next = arith.addf %acc, %product1 : f32
    linalg.yield %next : f32
  } -> tensor<?x?xf32, #arg0>
  %target = lacis.zeros %arg0 : !lacis.pattern<?x?, #arg0> to tensor<?x?xbf16, #arg0>
  %result = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%sum : tensor<?x?xf32, #arg0>) outs(%target : tensor<?x?xbf16, #arg0>) {
  ^bb0(%value: f32, %old: bf16):
    %rounded = arith.truncf %value : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16, #arg0>
  return %result : tensor<?x?xbf16, #arg0>
}
