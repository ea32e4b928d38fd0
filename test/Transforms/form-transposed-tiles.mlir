// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// The product with the transpose walks panels of columns and reads the tiles transposed, where the values lie. Blocks
// that fill the panel have all their tiles in every step: no bitmap is read.
// CHECK-LABEL: func.func @whole(
// CHECK:         %[[HALVES:.*]] = lacis.regroup {{.*}}j floordiv 128 : dense, i floordiv 64 : compressed, j floordiv 64 mod 2 : bitmap, link, i mod 64 : dense, j mod 64 : dense)>>
// CHECK:         lacis.balance #lacis.tile_schedule<columns = 256, swizzle_group = 4, period = 16, {{.*}}> of %[[HALVES]]
// CHECK:           lacis.roles producer {
// CHECK:                   lacis.load_tile {{.*}} to !lacis.tile<256x64xbf16>
// CHECK-COUNT-2:           lacis.locate %[[HALVES]][3]
// CHECK:           } consumers 2
// CHECK-NOT:               lacis.presence
// CHECK:                   lacis.mma %{{.*}}[%{{.*}} : i32] transposed, %{{.*}} into
// CHECK:                 lacis.store_tile {{.*}} transposed
#arg0 = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 128 : compressed, i mod 128 : dense, j mod 128 : dense)>
func.func @whole(%arg0: tensor<?x?xbf16, #arg0> {lacis.name = "0", lacis.divisible = array<i64: 128, 128>}, %out: tensor<?x?xbf16> {lacis.name = "out", lacis.divisible = array<i64: 32, 128>}) -> (tensor<?x?xbf16> {lacis.name = "1"})
    attributes {lacis.kernel, lacis.steps = []} {
  %axis_b = arith.constant 0 : index
  %size_b = tensor.dim %out, %axis_b : tensor<?x?xbf16>
  %axis_j = arith.constant 1 : index
  %size_j = tensor.dim %arg0, %axis_j : tensor<?x?xbf16, #arg0>
  %empty = tensor.empty(%size_b, %size_j) : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, j, i) -> (i, j)>, affine_map<(b, j, i) -> (b, i)>, affine_map<(b, j, i) -> (b, j)>], iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "j", "i"]}
      ins(%arg0, %out : tensor<?x?xbf16, #arg0>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%in0: bf16, %in1: bf16, %acc: f32):
    %wide0 = arith.extf %in0 : bf16 to f32
    %wide1 = arith.extf %in1 : bf16 to f32
    %product1 = arith.mulf %wide0, %wide1 : f32
    %next = arith.addf %acc, %product1 : f32
    linalg.yield %next : f32
  } -> tensor<?x?xf32>
  %target = tensor.empty(%size_b, %size_j) : tensor<?x?xbf16>
  %result = linalg.generic {indexing_maps = [affine_map<(b, j) -> (b, j)>, affine_map<(b, j) -> (b, j)>], iterator_types = ["parallel", "parallel"], lacis.loops = ["b", "j"]}
      ins(%sum : tensor<?x?xf32>) outs(%target : tensor<?x?xbf16>) {
  ^bb0(%value: f32, %old: bf16):
    %rounded = arith.truncf %value : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16>
  return %result : tensor<?x?xbf16>
}

// -----

// Smaller blocks: slabs of 16 x 64, copied in that layout.
// CHECK-LABEL: func.func @slabs(
// CHECK:         %[[SLABS:.*]] = lacis.regroup {{.*}}(j floordiv 64 mod 6, i floordiv 16 mod 4) : bitmap, i mod 16 : dense, j mod 64 : dense)>, capacity = 16>
// CHECK:           lacis.ring : !lacis.ring<4, <128x64xbf16>, <16x16x64xbf16>>
// CHECK:                   lacis.load_run %[[SLABS]]
// CHECK:           } consumers 3
// CHECK:                   lacis.presence %[[SLABS]][2]
// CHECK-COUNT-2:           lacis.mma {{.*}} transposed present
#arg0 = #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
func.func @slabs(%arg0: tensor<?x?xbf16, #arg0> {lacis.name = "0", lacis.divisible = array<i64: 128, 128>}, %out: tensor<?x?xbf16> {lacis.name = "out", lacis.divisible = array<i64: 32, 128>}) -> (tensor<?x?xbf16> {lacis.name = "1"})
    attributes {lacis.kernel, lacis.steps = []} {
  %axis_b = arith.constant 0 : index
  %size_b = tensor.dim %out, %axis_b : tensor<?x?xbf16>
  %axis_j = arith.constant 1 : index
  %size_j = tensor.dim %arg0, %axis_j : tensor<?x?xbf16, #arg0>
  %empty = tensor.empty(%size_b, %size_j) : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, j, i) -> (i, j)>, affine_map<(b, j, i) -> (b, i)>, affine_map<(b, j, i) -> (b, j)>], iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "j", "i"]}
      ins(%arg0, %out : tensor<?x?xbf16, #arg0>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%in0: bf16, %in1: bf16, %acc: f32):
    %wide0 = arith.extf %in0 : bf16 to f32
    %wide1 = arith.extf %in1 : bf16 to f32
    %product1 = arith.mulf %wide0, %wide1 : f32
    %next = arith.addf %acc, %product1 : f32
    linalg.yield %next : f32
  } -> tensor<?x?xf32>
  %target = tensor.empty(%size_b, %size_j) : tensor<?x?xbf16>
  %result = linalg.generic {indexing_maps = [affine_map<(b, j) -> (b, j)>, affine_map<(b, j) -> (b, j)>], iterator_types = ["parallel", "parallel"], lacis.loops = ["b", "j"]}
      ins(%sum : tensor<?x?xf32>) outs(%target : tensor<?x?xbf16>) {
  ^bb0(%value: f32, %old: bf16):
    %rounded = arith.truncf %value : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16>
  return %result : tensor<?x?xbf16>
}
