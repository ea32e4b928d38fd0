// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper -lacis-lower-tiles-ampere=shared=101376 | FileCheck %s

// In TF32 warps multiply what is transposed, on every architecture. Lines along the contraction are matrices of eight rows and four elements;
// transposed ones are read element by element, because no instruction transposes 32 bits.
// CHECK-LABEL: func @product(
#size = #lacis.size<arg 1>
module attributes {lacis.artifact = {args = [{kind = "operand", operand = 0 : i64}, {dim = 0 : i64, kind = "dim", operand = 0 : i64}],
                                     launches = [{block = [1], entry = "product", shared = 0 : i64}]}} {
  func.func @product(%x: !llvm.ptr, %n: i64) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant 0.0 : f32
    %ring = lacis.ring : !lacis.ring<2, <32x32xf32>, <64x32xf32>>
    lacis.roles producer {
      // CHECK-COUNT-6: nvvm.cp.async.shared.global
      %w, %t = lacis.acquire %ring : !lacis.ring<2, <32x32xf32>, <64x32xf32>> -> !lacis.tile<32x32xf32>, !lacis.tile<64x32xf32>
      lacis.load_tile %x[%c0, %c0] to %w {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<32x32xf32>
      lacis.load_tile %x[%c0, %c0] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x32xf32>
      %next = lacis.release %ring : !lacis.ring<2, <32x32xf32>, <64x32xf32>>
      lacis.yield
    } consumers 1 (%c : i32) {
      %acc = lacis.splat %zero : f32 to !lacis.acc<32x64xf32>
      %w, %t = lacis.acquire %ring : !lacis.ring<2, <32x32xf32>, <64x32xf32>> -> !lacis.tile<32x32xf32>, !lacis.tile<64x32xf32>
      // CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
      // CHECK:         nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>
      // CHECK-COUNT-4: cvt.rna.tf32.f32
      // CHECK-COUNT-4: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<tf32>{{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 8>
      %sum = lacis.mma %w transposed, %t into %acc in tf32 : !lacis.tile<32x32xf32>, !lacis.tile<64x32xf32> into !lacis.acc<32x64xf32>
      %next = lacis.release %ring : !lacis.ring<2, <32x32xf32>, <64x32xf32>>
      %r, %done = lacis.complete %next, %sum : !lacis.ring<2, <32x32xf32>, <64x32xf32>>, !lacis.acc<32x64xf32> -> !lacis.ring<2, <32x32xf32>, <64x32xf32>>, !lacis.acc<32x64xf32>
      // CHECK:     llvm.store %{{.*}} {alignment = 4 : i64} : vector<1xf32>
      lacis.store_tile %done to %x[%c0, %c0] transposed {shape = [#size, #size], type = f32} : !lacis.acc<32x64xf32> to !llvm.ptr[i32, i32]
      lacis.yield
    }
    return
  }
}

// -----

// Lines of 64 rows along the contraction are for a warpgroup: the copies round, and a result is stored as it is.
// CHECK:       tensor_maps = [{box = [32, 64], dtype = "tf32"
// CHECK-LABEL: func @upright(
#size = #lacis.size<arg 1>
module attributes {lacis.artifact = {args = [{kind = "operand", operand = 0 : i64}, {dim = 0 : i64, kind = "dim", operand = 0 : i64}],
                                     launches = [{block = [1], entry = "upright", shared = 0 : i64}]}} {
  func.func @upright(%x: !llvm.ptr, %n: i64) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %zero = arith.constant 0.0 : f32
    %ring = lacis.ring : !lacis.ring<2, <64x32xf32>>
    lacis.roles producer {
      %t = lacis.acquire %ring : !lacis.ring<2, <64x32xf32>> -> !lacis.tile<64x32xf32>
      lacis.load_tile %x[%c0, %c0] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x32xf32>
      %next = lacis.release %ring : !lacis.ring<2, <64x32xf32>>
      lacis.yield
    } consumers 1 (%c : i32) {
      %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
      %t = lacis.acquire %ring : !lacis.ring<2, <64x32xf32>> -> !lacis.tile<64x32xf32>
      // CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32
      // CHECK-NOT:     nvvm.mma.sync
      %sum = lacis.mma %t, %t into %acc in tf32 : !lacis.tile<64x32xf32>, !lacis.tile<64x32xf32> into !lacis.acc<64x64xf32>
      %next = lacis.release %ring : !lacis.ring<2, <64x32xf32>>
      %r, %done = lacis.complete %next, %sum : !lacis.ring<2, <64x32xf32>>, !lacis.acc<64x64xf32> -> !lacis.ring<2, <64x32xf32>>, !lacis.acc<64x64xf32>
      // CHECK-COUNT-32: llvm.store %{{.*}} {alignment = 4 : i64} : f32
      lacis.store_tile %done to %x[%c0, %c0] transposed {shape = [#size, #size], type = f32} : !lacis.acc<64x64xf32> to !llvm.ptr[i32, i32]
      lacis.yield
    }
    return
  }
}

// -----

func.func @halves(%a: !lacis.tile<64x64xbf16>, %acc: !lacis.acc<64x64xf32>) -> !lacis.acc<64x64xf32> {
  // expected-error @+1 {{tf32 is of tiles of f32; got 'bf16'}}
  %sum = lacis.mma %a, %a into %acc in tf32 : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return %sum : !lacis.acc<64x64xf32>
}
