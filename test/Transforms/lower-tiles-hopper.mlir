// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper | FileCheck %s

// Roles become warpgroups that meet at barriers: the first loads a box behind a barrier, the second adds its product
// to registers, and gives the stage before back once the products that read it are complete.
// CHECK: shape = {{.*}}swizzle = 128
// CHECK: llvm.mlir.global external @lacis_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: func @product(
// CHECK-SAME:    %[[MAP:[^:]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>})
// CHECK-SAME:    lacis.block = array<i64: 256, 1, 1>, lacis.blocks_per_processor = 3
#size = #lacis.size<arg 1>
module attributes {lacis.artifact = {args = [{kind = "operand", operand = 0 : i64}, {dim = 0 : i64, kind = "dim", operand = 0 : i64}],
                                     launches = [{block = [1], entry = "product", shared = 0 : i64}]}} {
  func.func @product(%x: !llvm.ptr, %n: i64, %rounds: i32) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
    // CHECK:     mbarrier.init
    // CHECK:     nvvm.barrier
    // CHECK:     scf.if
    // CHECK:       nvvm.setmaxregister decrease
    lacis.roles producer {
      // CHECK:     scf.for {{.*}} iter_args(%[[STAGE:[^ ]*]] = %{{[^,]*}}, %{{[^ ]*}} = %{{[^,]*}}, %{{.*}}) -> (i32, i32, i32)
      // CHECK:       mbarrier.try_wait.parity
      // CHECK:       mbarrier.expect_tx
      // CHECK:       cp.async.bulk.tensor.2d{{.*}} %{{[^,]*}}, %[[MAP]], %{{.*}}
      // CHECK:       mbarrier.arrive
      %end = scf.for %i = %c0 to %rounds step %c1 iter_args(%r = %ring) -> (!lacis.ring<2, <64x64xbf16>>) : i32 {
        %t = lacis.acquire %r : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
        lacis.load_tile %x[%c0, %i] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x64xbf16>
        %next = lacis.release %r : !lacis.ring<2, <64x64xbf16>>
        scf.yield %next : !lacis.ring<2, <64x64xbf16>>
      }
      lacis.yield
    // CHECK:     } else {
    // CHECK:       nvvm.setmaxregister increase
    } consumers 1 (%c : i32) {
      %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
      // CHECK:     scf.for
      // CHECK:       mbarrier.try_wait.parity
      // CHECK:       nvvm.wgmma.fence.aligned
      // CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k16
      // CHECK:       nvvm.wgmma.commit.group.sync.aligned
      // CHECK:       nvvm.wgmma.wait.group.sync.aligned 1
      // CHECK:       mbarrier.arrive
      // CHECK:     nvvm.wgmma.wait.group.sync.aligned 0
      %end, %sum = scf.for %i = %c0 to %rounds step %c1 iter_args(%r = %ring, %a = %acc) -> (!lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>) : i32 {
        %t = lacis.acquire %r : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
        %b = lacis.mma %t, %t into %a : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
        %next = lacis.release %r : !lacis.ring<2, <64x64xbf16>>
        scf.yield %next, %b : !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>
      }
      %r2, %done = lacis.complete %end, %sum : !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32> -> !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>
      lacis.yield
    }
    return
  }
}

// -----

func.func @large(%rounds: i32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<5, <256x64xbf16>, <256x64xbf16>>
  // expected-error@+1 {{tiles: rings of 327680 bytes and 0 bytes for stores are more than the 232360 bytes of shared memory; use fewer stages or smaller tiles}}
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t, %u = lacis.acquire %ring : !lacis.ring<5, <256x64xbf16>, <256x64xbf16>> -> !lacis.tile<256x64xbf16>, !lacis.tile<256x64xbf16>
    lacis.yield
  }
  return
}

// -----

func.func @tall(%zero: f32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<128x64xf32>
    // expected-error@+1 {{tiles: a consumer holds 64 rows of up to 256 float32 columns, a multiple of 8; got '!lacis.acc<128x64xf32>'}}
    %0 = lacis.map %acc {
    ^bb0(%e: f32):
      lacis.yield %e : f32
    } : !lacis.acc<128x64xf32> -> !lacis.acc<128x64xf32>
    lacis.yield
  }
  return
}
