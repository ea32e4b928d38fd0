// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: lacis-opt %t/right.mlir -lacis-lower-tiles-hopper | FileCheck %s
// RUN: lacis-opt %t/right.mlir -lacis-lower-tiles-plain | FileCheck %s --check-prefix=PLAIN
// RUN: lacis-opt %t/refused.mlir -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper
// RUN: lacis-opt %t/right.mlir -lacis-lower-tiles-ampere | FileCheck %s --check-prefix=WARPS

// A sum begins at what is read by column; a place is read again when the next one has been acquired, and then released.

//--- right.mlir
// Vectors lie among the barriers, 256 bytes a stage, and lanes read neighbours of their two columns.
// CHECK-LABEL: func @chain(
// CHECK:       nvvm.setmaxregister decrease
// CHECK-COUNT-2: cp.async.bulk.tensor.2d
// CHECK:       nvvm.setmaxregister increase
// CHECK:       scf.for
// CHECK:         mbarrier.try_wait
// CHECK:         arith.constant 256 : i32
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 0, 0;
// CHECK-NOT:     mbarrier.try_wait
// CHECK:         wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 0, 1, 1, 0, 0;
// CHECK:         nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:         mbarrier.arrive
// CHECK:         scf.yield
// Sixteen threads copy a vector; a warp has 16 of the columns, and of those two of eight.
// WARPS-LABEL: func @chain(
// WARPS:         cp.async.mbarrier.arrive.noinc
// WARPS:         scf.for
// WARPS:           mbarrier.test_wait
// WARPS-COUNT-2:   llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// WARPS-COUNT-32:  nvvm.mma.sync
// WARPS-NOT:       mbarrier.test_wait
// WARPS-COUNT-32:  nvvm.mma.sync
// WARPS:           mbarrier.arrive.shared
// WARPS:           scf.yield
// The first place is number 0, and carried; the stage that is read again is that of the number before.
// PLAIN-LABEL: func @chain(
// PLAIN-COUNT-2: func.call @chain_producer(
// PLAIN:         arith.remui %{{.*}}, %c3_i64
// PLAIN-NOT:     scf.while
// PLAIN:         arith.remui %{{.*}}, %c3_i64
!ring = !lacis.ring<3, <64x64xbf16>, <1x64xf32>>
!tile = !lacis.tile<64x64xbf16>
!line = !lacis.tile<1x64xf32>
!acc = !lacis.acc<64x64xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "chain", shared = 0 : i64}]}} {
func.func @chain(%x: !llvm.ptr, %y: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %ring = lacis.ring : !ring
  lacis.roles producer {
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%r = %ring) -> (!ring) : i32 {
      %t, %l = lacis.acquire %r : !ring -> !tile, !line
      lacis.load_tile %x[%i, %c0] to %t {shape = [#lacis.size<64>, #lacis.size<64>]} : !llvm.ptr[i32, i32] to !tile
      lacis.load_tile %y[%c0, %i] to %l {shape = [#lacis.size<1>, #lacis.size<64>]} : !llvm.ptr[i32, i32] to !line
      %next = lacis.release %r : !ring
      scf.yield %next : !ring
    }
    lacis.yield
  } consumers 1 (%c : i32) {
    %none = lacis.splat %zero : f32 to !acc
    %t, %l = lacis.acquire %ring : !ring -> !tile, !line
    %after = lacis.advance %ring : !ring
    %end:3 = scf.for %i = %c1 to %n step %c1 iter_args(%kept = %ring, %r = %after, %sum = %none) -> (!ring, !ring, !acc) : i32 {
      %u, %m = lacis.acquire %r : !ring -> !tile, !line
      %start = lacis.read_columns %m : !line to !acc
      %x0 = lacis.mma %u, %u into %start : !tile, !tile into !acc
      %v, %w = lacis.revisit %kept : !ring -> !tile, !line
      %x1 = lacis.mma %v, %v : !tile, !tile into !acc
      %both:2 = lacis.complete %x0, %x1 : !acc, !acc -> !acc, !acc
      %free = lacis.release %kept : !ring
      %next = lacis.advance %r : !ring
      scf.yield %r, %next, %both#0 : !ring, !ring, !acc
    }
    %last = lacis.release %end#0 : !ring
    lacis.yield
  }
  return
}
}

//--- refused.mlir
// A product of the place is under way when the place is released.
func.func @advance(%zero: f32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %none = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    %t = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    %x = lacis.mma %t, %t into %none : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: a place that is kept beyond the next one is read by products that are complete in the block that begins them, and before it is released}}
    %next = lacis.advance %ring : !lacis.ring<2, <64x64xbf16>>
    lacis.yield
  }
  return
}

// -----

func.func @one_stage(%zero: f32) attributes {lacis.gpu_kernel} {
  // expected-error @+1 {{tiles: a ring of one stage is read by products that are complete before it is released; use two stages}}
  %ring = lacis.ring : !lacis.ring<1, <64x64xbf16>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %none = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    %t = lacis.acquire %ring : !lacis.ring<1, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    %x = lacis.mma %t, %t into %none : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
    %next = lacis.release %ring : !lacis.ring<1, <64x64xbf16>>
    lacis.yield
  }
  return
}
