// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper | FileCheck %s

// Transposed tiles: eight rows of the contraction follow each other after 1024 bytes, tiles that stand side by side
// after their 8192 bytes, and 16 elements of the contraction after 2048 bytes. Of a transposed tile beside one that is
// not, the steps differ. A tile is read as it is stored, and a vector element by element.
// CHECK-LABEL: func @products(
// CHECK:         %[[A:.*]] = arith.ori %{{.*}}, %c4611686293338849280_i64
// CHECK:         %[[B:.*]] = arith.ori %{{.*}}, %c4611686293338849280_i64
// CHECK:         wgmma.mma_async.sync.aligned.m64n128k16{{.*}}, 1, 1, 1, 1, 1;{{.*}} %[[A]], %[[B]] :
// CHECK:         arith.addi %[[A]], %c128_i64
// CHECK:         arith.addi %[[B]], %c128_i64
// CHECK:         %[[A2:.*]] = arith.ori %{{.*}}, %c4611686293338849280_i64
// CHECK:         %[[B2:.*]] = arith.ori %{{.*}}, %c4611686293305360384_i64
// CHECK:         wgmma.mma_async.sync.aligned.m64n64k16{{.*}}, 1, 1, 1, 1, 0;{{.*}} %[[A2]], %[[B2]] :
// CHECK:         arith.addi %[[A2]], %c128_i64
// CHECK:         arith.addi %[[B2]], %c2_i64
// CHECK:         nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>
// CHECK:         scf.if
// CHECK:           llvm.load %{{.*}} : !llvm.ptr -> bf16
!ring = !lacis.ring<2, <64x64xbf16>, <2x64x64xbf16>>
!tile = !lacis.tile<64x64xbf16>
!list = !lacis.tile<2x64x64xbf16>
!acc = !lacis.acc<64x128xf32>
!part = !lacis.acc<64x64xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "products", shared = 0 : i64}]}} {
  func.func @products(%bias: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel} {
    %zero = arith.constant 0.0 : f32
    %ring = lacis.ring : !ring
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : i32) {
      %none = lacis.splat %zero : f32 to !acc
      %t, %u = lacis.acquire %ring : !ring -> !tile, !list
      %0 = lacis.mma %t transposed, %u[%c : i32] transposed into %none : !tile, !list into !acc
      %left = lacis.columns %none from 64 : !acc to !part
      %1 = lacis.mma %t transposed, %t into %left : !tile, !tile into !part
      %2 = lacis.read_tile %u[%c : i32] transposed : !list to !part
      %3 = lacis.load_rows %bias[%n] of %n : i32 {type = bf16} : !llvm.ptr[i32] to !lacis.acc<64x1xf32>
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
    // expected-error@+1 {{tiles: a product has 16 elements of the contraction, and 8 rows, or a multiple; got '!lacis.tile<8x64xbf16>'}}
    %0 = lacis.mma %t transposed, %t transposed into %acc : !lacis.tile<8x64xbf16>, !lacis.tile<8x64xbf16> into !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}

// -----

func.func @columns(%zero: f32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    // expected-error@+1 {{columns are taken by eight}}
    %0 = lacis.columns %acc from 4 : !lacis.acc<64x64xf32> to !lacis.acc<64x8xf32>
    lacis.yield
  }
  return
}
