// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// A product sampled on stored blocks of 64: shares of eight, four for each consumer, written where the values lie.
// CHECK-LABEL: func.func @blocks(
// CHECK:         %[[BLOCKS:.*]] = lacis.regroup
// CHECK:         %[[LISTS:.*]] = lacis.balance #lacis.segment_schedule<length = 8, split = 8, {{.*}}> of %[[BLOCKS]] :
// CHECK:           lacis.ring : !lacis.ring<3, <64x64xbf16>, <8x64x64xbf16>>
// CHECK:           lacis.roles producer {
// CHECK:               lacis.level_loop "i0_j004" %[[LISTS]][6]
// CHECK:                 lacis.bounds %[[BLOCKS]][1]
// CHECK-COUNT-8:         lacis.coordinate %[[BLOCKS]][1]
// CHECK:                 lacis.loop "b0"
// CHECK:                   lacis.load_tile {{.*}} to !lacis.tile<64x64xbf16>
// CHECK-COUNT-8:           lacis.load_tile {{.*}} to !lacis.tile<8x64x64xbf16>
// CHECK:           } consumers 2
// CHECK:                   lacis.mma {{.*}} transposed, {{.*}} transposed into
// CHECK:                 lacis.complete
// CHECK:                 lacis.locate %[[BLOCKS]][3]
// CHECK-COUNT-4:         lacis.store_tile
// CHECK-NOT:             lacis.store_tile
// CHECK-COUNT-4:         lacis.store_acc {{.*}} : !lacis.acc<64x64xf32>
// CHECK:           lacis.roles producer {
// CHECK-NOT:         lacis.mma
// CHECK:               lacis.loop "step"
// CHECK:               lacis.loop "part"
// CHECK:                 lacis.load_acc {{.*}} onto
// CHECK:               lacis.store_tile
#arg0 = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @blocks(%arg0: !lacis.pattern<?x?, #arg0> {lacis.name = "0", lacis.divisible = array<i64: 128, 128>}, %arg1: tensor<?x?xbf16> {lacis.name = "1", lacis.divisible = array<i64: 32, 128>}, %out: tensor<?x?xbf16> {lacis.name = "out", lacis.divisible = array<i64: 32, 128>}) -> (tensor<?x?xbf16, #arg0> {lacis.name = "0"})
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

// -----

// Blocks of 32 are the union of four block rows, 64 columns a step; only those that are stored leave the accumulator.
// CHECK-LABEL: func.func @small(
// CHECK:         %[[UNION:.*]] = lacis.regroup {{.*}}i floordiv 128 : dense, j floordiv 64 : compressed, (i floordiv 32 mod 4, j floordiv 32 mod 2) : bitmap, link
// CHECK:         lacis.balance #lacis.segment_schedule<length = 4, split = 8, {{.*}}> of %[[UNION]] :
// CHECK:           lacis.ring : !lacis.ring<4, <4x64x64xbf16>, <4x64x32xbf16>>
// CHECK:           lacis.roles producer {
// CHECK-COUNT-4:     lacis.origin %[[UNION]]
// CHECK:           } consumers 2
// CHECK:                   lacis.mma %{{.*}}[%{{.*}}] transposed
// CHECK:                 lacis.columns {{.*}} to !lacis.acc<64x32xf32>
// CHECK-COUNT-2:         lacis.find %[[UNION]][2]
// CHECK:                 lacis.store_blocks {{.*}}[%{{.*}}, %{{.*}}] : !lacis.acc<64x32xf32>
#arg0 = #lacis.format<(i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, i mod 32 : dense, j mod 32 : dense)>
func.func @small(%arg0: !lacis.pattern<?x?, #arg0> {lacis.name = "0", lacis.divisible = array<i64: 128, 128>}, %arg1: tensor<?x?xbf16> {lacis.name = "1", lacis.divisible = array<i64: 32, 128>}, %out: tensor<?x?xbf16> {lacis.name = "out", lacis.divisible = array<i64: 32, 128>}) -> (tensor<?x?xbf16, #arg0> {lacis.name = "0"})
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
