// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s

// How many slabs of small stored blocks a stage holds follows a hint on the operand, and as many stages as fit.
// CHECK-LABEL: func.func @usual(
// CHECK:         lacis.ring : !lacis.ring<4, <128x64xbf16>, <16x64x16xbf16>>
// CHECK-LABEL: func.func @dense(
// CHECK:         lacis.ring : !lacis.ring<3, <128x64xbf16>, <24x64x16xbf16>>

#bsr = #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
func.func @usual(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.divisible = array<i64: 16, 8>},
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

func.func @dense(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.divisible = array<i64: 16, 8>, lacis.slabs = 24 : i64},
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
