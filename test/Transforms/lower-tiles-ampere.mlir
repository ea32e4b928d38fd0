// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-ampere=shared=101376 | FileCheck %s

// Roles become warps that meet at barriers: four copy chunks of 16 bytes, those outside as zeros, and arrive when their
// copies are there; four read matrices and add products to registers, and give the stage back.
// CHECK-LABEL: func @product(
// CHECK-SAME:    %[[X:[^:]*]]: !llvm.ptr, %[[N:[^:]*]]: i64
// CHECK-SAME:    lacis.block = array<i64: 256, 1, 1>, lacis.blocks_per_processor = 1
#size = #lacis.size<arg 1>
module attributes {lacis.artifact = {args = [{kind = "operand", operand = 0 : i64}, {dim = 0 : i64, kind = "dim", operand = 0 : i64}],
                                     launches = [{block = [1], entry = "product", shared = 0 : i64}]}} {
  func.func @product(%x: !llvm.ptr, %n: i64, %rounds: i32) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
    // CHECK-COUNT-4: mbarrier.init
    // CHECK:         nvvm.barrier
    // CHECK:         scf.if
    lacis.roles producer {
      // CHECK:     scf.for {{.*}} iter_args(%[[STAGE:[^ ]*]] = %{{[^,]*}}, %{{[^ ]*}} = %{{.*}}) -> (i32, i32)
      // CHECK:       mbarrier.test_wait.parity
      // CHECK:       %[[COLUMN:.*]] = arith.cmpi ult
      // CHECK:       %[[LIMIT:.*]] = arith.select %[[COLUMN]]
      // CHECK:       %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %[[LIMIT]]
      // CHECK:       %[[SIZE:.*]] = arith.select %[[INSIDE]]
      // CHECK:       llvm.getelementptr %[[X]]
      // CHECK:       nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg, %[[SIZE]]
      // CHECK-COUNT-3: nvvm.cp.async.shared.global
      // CHECK-NOT:   nvvm.cp.async.shared.global
      // CHECK:       cp.async.mbarrier.arrive.noinc
      %end = scf.for %i = %c0 to %rounds step %c1 iter_args(%r = %ring) -> (!lacis.ring<2, <64x64xbf16>>) : i32 {
        %t = lacis.acquire %r : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
        lacis.load_tile %x[%c0, %i] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x64xbf16>
        %next = lacis.release %r : !lacis.ring<2, <64x64xbf16>>
        scf.yield %next : !lacis.ring<2, <64x64xbf16>>
      }
      lacis.yield
    // CHECK:       cp.async.wait_all
    // CHECK:     } else {
    } consumers 1 (%c : i32) {
      %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
      // CHECK:     scf.for
      // CHECK:       mbarrier.test_wait.parity
      // CHECK-COUNT-4: nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<row>
      // CHECK:       nvvm.ldmatrix
      // CHECK-COUNT-8: nvvm.mma.sync {{.*}}shape = #nvvm.shape<m = 16, n = 8, k = 16>
      // CHECK:       mbarrier.arrive
      %end, %sum = scf.for %i = %c0 to %rounds step %c1 iter_args(%r = %ring, %a = %acc) -> (!lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>) : i32 {
        %t = lacis.acquire %r : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
        %b = lacis.mma %t, %t into %a : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
        %next = lacis.release %r : !lacis.ring<2, <64x64xbf16>>
        scf.yield %next, %b : !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>
      }
      %r2, %done = lacis.complete %end, %sum : !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32> -> !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>
      // The lanes of a quad bring 16 bytes of a row of the output together.
      // CHECK:     movmatrix.sync.aligned.m8n8.trans.b16
      // CHECK:     arith.addi %[[ROW:.*]], %c0_i64 : i64
      // CHECK:     nvvm.shfl.sync
      // CHECK:     scf.if
      // CHECK:       llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
      // CHECK:     arith.addi %[[ROW]], %c8_i64 : i64
      lacis.store_tile %done to %x[%c0, %c0] transposed {shape = [#size, #size], type = bf16} : !lacis.acc<64x64xf32> to !llvm.ptr[i32, i32]
      lacis.yield
    }
    return
  }
}

// -----

func.func @large(%rounds: i32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<3, <256x64xbf16>, <2x64x64xbf16>>
  // expected-error@+1 {{tiles: rings of 147456 bytes are more than the 101328 bytes of shared memory; use fewer stages or smaller tiles}}
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t, %u = lacis.acquire %ring : !lacis.ring<3, <256x64xbf16>, <2x64x64xbf16>> -> !lacis.tile<256x64xbf16>, !lacis.tile<2x64x64xbf16>
    lacis.yield
  }
  return
}

// -----

func.func @narrow(%zero: f32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x32xf32>
    // expected-error@+1 {{tiles: a consumer holds up to 16384 float32 numbers, in a multiple of 16 rows and of 64 columns; got '!lacis.acc<64x32xf32>'}}
    %0 = lacis.map %acc {
    ^bb0(%e: f32):
      lacis.yield %e : f32
    } : !lacis.acc<64x32xf32> -> !lacis.acc<64x32xf32>
    lacis.yield
  }
  return
}
