// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-tiles-ampere | FileCheck %s

// The products of a round take 128 registers of a thread: a fifth warp would keep a second block off, so consumers copy.

// CHECK-LABEL: func @ahead(
// CHECK-SAME:    lacis.block = array<i64: 128, 1, 1>, lacis.blocks_per_processor = 2
// What is copied once, and the first round, if there is one.
// CHECK-COUNT-4: nvvm.cp.async.shared.global
// CHECK:         cp.async.mbarrier.arrive.noinc
// CHECK:         %[[ROUND:[0-9]+]] = arith.addi %[[FROM:arg3]], %{{.*}} : i32
// CHECK:         %[[SOME:[0-9]+]] = arith.cmpi slt, %[[ROUND]], %[[TO:arg4]] : i32
// CHECK:         scf.if %[[SOME]]
// CHECK:           llvm.load
// CHECK-COUNT-4:   nvvm.cp.async.shared.global
// CHECK:           cp.async.mbarrier.arrive.noinc
// Each round begins the copies of the next one, which it counts, before it waits for its own.
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%{{[a-z0-9]+}} = %{{[a-z0-9_]+}}, %{{[a-z0-9]+}} = %{{[a-z0-9_]+}}, %[[COUNT:[a-z0-9]+]] =
// CHECK:           %[[NEXT:[0-9]+]] = arith.addi %[[COUNT]], %{{.*}} : i32
// CHECK:           %[[BEHIND:[0-9]+]] = arith.muli %[[NEXT]], %{{.*}} : i32
// CHECK:           %[[AHEAD:[0-9]+]] = arith.addi %[[FROM]], %[[BEHIND]] : i32
// CHECK:           %[[HAS:[0-9]+]] = arith.cmpi slt, %[[AHEAD]], %[[TO]] : i32
// CHECK:           scf.if %[[HAS]]
// CHECK:             llvm.load
// CHECK-COUNT-4:     nvvm.cp.async.shared.global
// CHECK:             cp.async.mbarrier.arrive.noinc
// CHECK:           nvvm.mma.sync
!once = !lacis.ring<1, <64x64xbf16>>
!ring = !lacis.ring<2, <64x64xbf16>>
!tile = !lacis.tile<64x64xbf16>
!acc = !lacis.acc<64x64xf32>
!half = !lacis.acc<64x64xbf16>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "ahead", shared = 0 : i64}]}} {
func.func @ahead(%x: !llvm.ptr, %y: !llvm.ptr, %crd: !llvm.ptr, %lo: i32, %hi: i32, %out: !llvm.ptr, %n: i32)
    attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %a = lacis.ring : !once
  %b = lacis.ring : !ring
  lacis.roles producer {
    %t = lacis.acquire %a : !once -> !tile
    lacis.load_tile %x[%c0, %c0] to %t {shape = [#lacis.size<64>, #lacis.size<64>]} : !llvm.ptr[i32, i32] to !tile
    %done = lacis.release %a : !once
    %end = scf.for %p = %lo to %hi step %c1 iter_args(%at = %b) -> (!ring) : i32 {
      %wide = arith.extsi %p : i32 to i64
      %place = llvm.getelementptr %crd[%wide] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      %j = llvm.load %place : !llvm.ptr -> i32
      %u = lacis.acquire %at : !ring -> !tile
      lacis.load_tile %y[%j, %c0] to %u {shape = [#lacis.size<4096>, #lacis.size<64>]} : !llvm.ptr[i32, i32] to !tile
      %next = lacis.release %at : !ring
      scf.yield %next : !ring
    }
    lacis.yield
  } consumers 1 (%c : i32) {
    %t = lacis.acquire %a : !once -> !tile
    %none = lacis.splat %zero : f32 to !acc
    %parts = lacis.splat %zero : f32 to !lacis.acc<64x1xf32>
    %end:5 = scf.for %p = %lo to %hi step %c1 iter_args(%at = %b, %o = %none, %q = %none, %r = %none, %sum = %parts)
        -> (!ring, !acc, !acc, !acc, !lacis.acc<64x1xf32>) : i32 {
      %u = lacis.acquire %at : !ring -> !tile
      %s = lacis.mma %t, %u : !tile, !tile into !acc
      %h = lacis.map %s {
      ^bb0(%e: f32):
        %f = arith.truncf %e : f32 to bf16
        lacis.yield %f : bf16
      } : !acc -> !half
      %o1 = lacis.mma %h, %u transposed into %o : !half, !tile into !acc
      %q1 = lacis.mma %h, %u transposed into %q : !half, !tile into !acc
      %r1 = lacis.mma %h, %u transposed into %r : !half, !tile into !acc
      %more = lacis.reduce_rows "sum" %r1 onto %sum : !acc -> !lacis.acc<64x1xf32>
      %next = lacis.release %at : !ring
      scf.yield %next, %o1, %q1, %r1, %more : !ring, !acc, !acc, !acc, !lacis.acc<64x1xf32>
    }
    lacis.store_rows %end#4 to %out[%c0] of %n : i32 : !lacis.acc<64x1xf32> to !llvm.ptr[i32]
    lacis.yield
  }
  return
}
}
