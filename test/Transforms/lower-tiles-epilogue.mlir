// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-tiles-hopper | FileCheck %s

// A map that only a store reads is computed in its parts, each under a branch of its own; what it reads of a tile is
// loaded there. A tile whose stage is given back before the store is read at once.
// CHECK-LABEL: func @epilogue(
// CHECK:         wgmma.mma_async
// CHECK-NOT:     arith.mulf
// CHECK:         %dynamic_smem_size
// CHECK:         %[[ALWAYS:.*]] = arith.cmpi ne
// CHECK:         scf.if %[[ALWAYS]] {
// CHECK:           nvvm.ldmatrix
// CHECK-COUNT-8:   arith.mulf
// CHECK:           stmatrix
// CHECK-COUNT-8:   arith.mulf
// CHECK:           stmatrix
// CHECK-LABEL: func @given_back(
// CHECK:         wgmma.mma_async
// CHECK:         nvvm.ldmatrix
// CHECK:         scf.if
// CHECK:         arith.mulf
// CHECK:         stmatrix
#size = #lacis.size<64>
!ring = !lacis.ring<2, <64x64xbf16>>
!tile = !lacis.tile<64x64xbf16>
!acc = !lacis.acc<64x64xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "epilogue", shared = 0 : i64}, {block = [1], entry = "given_back", shared = 0 : i64}]}} {
  func.func @epilogue(%y: !llvm.ptr) attributes {lacis.gpu_kernel} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : i32
    %ring = lacis.ring : !ring
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : i32) {
      %none = lacis.splat %zero : f32 to !acc
      %t = lacis.acquire %ring : !ring -> !tile
      %sum = lacis.mma %t, %t into %none : !tile, !tile into !acc
      %old = lacis.read_tile %t transposed : !tile to !acc
      %all = lacis.map %sum, %old {
      ^bb0(%a: f32, %b: f32):
        %both = arith.mulf %a, %b : f32
        lacis.yield %both : f32
      } : !acc, !acc -> !acc
      lacis.store_tile %all to %y[%c0, %c0] transposed {shape = [#size, #size], type = bf16} : !acc to !llvm.ptr[i32, i32]
      %next = lacis.release %ring : !ring
      lacis.yield
    }
    return
  }
  func.func @given_back(%y: !llvm.ptr) attributes {lacis.gpu_kernel} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : i32
    %ring = lacis.ring : !ring
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : i32) {
      %none = lacis.splat %zero : f32 to !acc
      %t = lacis.acquire %ring : !ring -> !tile
      %sum = lacis.mma %t, %t into %none : !tile, !tile into !acc
      %old = lacis.read_tile %t transposed : !tile to !acc
      %next = lacis.release %ring : !ring
      %all = lacis.map %sum, %old {
      ^bb0(%a: f32, %b: f32):
        %both = arith.mulf %a, %b : f32
        lacis.yield %both : f32
      } : !acc, !acc -> !acc
      lacis.store_tile %all to %y[%c0, %c0] transposed {shape = [#size, #size], type = bf16} : !acc to !llvm.ptr[i32, i32]
      lacis.yield
    }
    return
  }
}
