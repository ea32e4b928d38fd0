// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-ampere | FileCheck %s

// Transposed tiles are read transposed. Where columns of an accumulator are taken each warp has 16 of its rows: one
// product of 16 x 8 below the other, none side by side with those of another warp. Groups of 32 rows go to their slots,
// and where a byte of the bitmap is 0 so is what is stored.
// CHECK-LABEL: func @products(
// CHECK:         mbarrier.test_wait.parity
// CHECK-COUNT-2: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK:         nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>
// CHECK:         scf.if
// CHECK:           %[[ENTRIES:.*]]:8 = scf.if %{{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK-COUNT-4:     llvm.load {{.*}} : !llvm.ptr -> i16
// CHECK:           arith.cmpf oeq, %[[ENTRIES]]#0
// CHECK:           cvt.rn.bf16x2.f32
// CHECK:           %[[NONE:.*]] = arith.cmpi slt, %[[FIRST:[^,]*]], %c0_i64
// CHECK:           %[[ROW:.*]] = arith.select %[[NONE]], %c-1_i64
// CHECK:           arith.cmpi ult, %[[ROW]]
// CHECK:           nvvm.shfl.sync
// CHECK:           llvm.store {{.*}} : vector<4xi32>
#rows = #lacis.size<arg 1>
#columns = #lacis.size<32>
!ring = !lacis.ring<2, <64x64xbf16>, <2x64x64xbf16>>
!tile = !lacis.tile<64x64xbf16>
!list = !lacis.tile<2x64x64xbf16>
!acc = !lacis.acc<64x128xf32>
!part = !lacis.acc<64x32xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "products", shared = 0 : i64}]}} {
  func.func @products(%values: !llvm.ptr, %n: i64, %bitmap: !llvm.ptr, %slot: i32, %size: i32) attributes {lacis.gpu_kernel} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : i32
    %ring = lacis.ring : !ring
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : i32) {
      %none = lacis.splat %zero : f32 to !acc
      %t, %u = lacis.acquire %ring : !ring -> !tile, !list
      %sum = lacis.mma %t transposed, %u[%c : i32] transposed into %none : !tile, !list into !acc
      %part = lacis.columns %sum from 64 : !acc to !part
      %entries = lacis.load_entries %bitmap[%slot, %slot] from %c0 of %size stride 32 : !llvm.ptr[i32, i32] from i32 of i32 to !part
      %kept = lacis.map %part, %entries {
      ^bb0(%e: f32, %is: f32):
        %no = arith.cmpf oeq, %is, %zero : f32
        %r = arith.select %no, %zero, %e : f32
        lacis.yield %r : f32
      } : !part, !part -> !part
      lacis.store_blocks %kept to %values[%slot, %slot] {shape = [#rows, #columns], type = bf16} : !part to !llvm.ptr[i32, i32]
      lacis.yield
    }
    return
  }
}

// -----

func.func @depth(%zero: f32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <8x64xbf16>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    %t = lacis.acquire %ring : !lacis.ring<2, <8x64xbf16>> -> !lacis.tile<8x64xbf16>
    // expected-error@+1 {{tiles: a product is of bf16 or f16 tiles, or in tf32 of f32 ones, whose rows have 32, 64 or 128 bytes, with 16 elements of the contraction, and 16 rows, or a multiple; got '!lacis.tile<8x64xbf16>'}}
    %0 = lacis.mma %t transposed, %t transposed into %acc : !lacis.tile<8x64xbf16>, !lacis.tile<8x64xbf16> into !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}
