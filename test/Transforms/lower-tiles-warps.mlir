// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: lacis-opt %t/right.mlir -lacis-lower-tiles-ampere | FileCheck %s
// RUN: lacis-opt %t/refused.mlir -split-input-file -verify-diagnostics -lacis-lower-tiles-ampere

// Chains of products by warps, each of which has 16 rows: two groups, with a producer, rings and a consumer each.

//--- right.mlir
// Rings of the second group lie behind those of the first; a warp copies for each.
// CHECK-LABEL: func @chain(
// CHECK-SAME:    lacis.block = array<i64: 320, 1, 1>, lacis.blocks_per_processor = 1
// CHECK-COUNT-8: mbarrier.init.shared
// CHECK:         %[[THREADS:.*]] = arith.constant 32 : i32
// CHECK:         arith.divui %{{.*}}, %[[THREADS]] : i32
// CHECK-COUNT-16: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = {{ *}}cg :
// CHECK-COUNT-16: nvvm.cp.async.shared.global
// CHECK:         cp.async.mbarrier.arrive.noinc
// Coordinates are told to the map; its numbers are rounded by two, and are the left side of the next product.
// CHECK-COUNT-32: nvvm.mma.sync
// CHECK-NOT:      nvvm.shfl
// CHECK:          arith.cmpi sle
// CHECK-COUNT-16: cvt.rn.bf16x2.f32
// CHECK-COUNT-32: nvvm.mma.sync
// CHECK:          mbarrier.arrive.shared
// Parts of rows stay with the threads until they are added up across the four of a row, of which one stores.
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT:     nvvm.shfl.sync
// CHECK-COUNT-2: llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr
!ring = !lacis.ring<1, <64x64xbf16>>
!tile = !lacis.tile<64x64xbf16>
!acc = !lacis.acc<64x64xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "chain", shared = 0 : i64}]}} {
func.func @chain(%x: !llvm.ptr, %y: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %a = lacis.ring : !ring
  %b = lacis.ring : !ring
  lacis.roles groups 2 producer (%g : i32) {
    %t = lacis.acquire %a : !ring -> !tile
    lacis.load_tile %x[%g, %c0] to %t {shape = [#lacis.size<64>, #lacis.size<64>]} : !llvm.ptr[i32, i32] to !tile
    %next = lacis.release %a : !ring
    lacis.yield
  } consumers 1 (%c : i32, %g : i32) {
    %parts = lacis.splat %zero : f32 to !lacis.acc<64x4xf32>
    %t = lacis.acquire %a : !ring -> !tile
    %u = lacis.acquire %b : !ring -> !tile
    %s = lacis.mma %t, %u : !tile, !tile into !acc
    %more = lacis.reduce_rows "sum" %s onto %parts : !acc -> !lacis.acc<64x4xf32>
    %p = lacis.map %s at [%g, %c0 : i32, i32] {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %is = arith.cmpi sle, %j, %i : i32
      %f = arith.select %is, %e, %zero : f32
      %h = arith.truncf %f : f32 to bf16
      lacis.yield %h : bf16
    } : !acc -> !lacis.acc<64x64xbf16>
    %o = lacis.mma %p, %u transposed : !lacis.acc<64x64xbf16>, !tile into !acc
    %next = lacis.release %b : !ring
    %row = lacis.reduce_rows "sum" %more : !lacis.acc<64x4xf32> -> !lacis.acc<64x1xf32>
    lacis.store_rows %row to %y[%g] of %n : i32 : !lacis.acc<64x1xf32> to !llvm.ptr[i32]
    lacis.yield
  }
  return
}
}

//--- refused.mlir
func.func @groups() attributes {lacis.gpu_kernel} {
  // expected-error @+1 {{tiles: the producers of 3 groups; four warps copy, for up to 2}}
  lacis.roles groups 3 producer (%g : i32) {
    lacis.yield
  } consumers 1 (%c : i32, %g : i32) {
    lacis.yield
  }
  return
}

// -----

func.func @halves(%half: bf16) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    // expected-error @+1 {{tiles: registers hold bf16 or f16 in a multiple of 64 rows and of 16 columns; got '!lacis.acc<64x8xbf16>'}}
    %all = lacis.splat %half : bf16 to !lacis.acc<64x8xbf16>
    lacis.yield
  }
  return
}

// -----

func.func @rounding(%half: bf16) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %all = lacis.splat %half : bf16 to !lacis.acc<64x16xbf16>
    // expected-error @+1 {{tiles: registers hold what a map rounds last, by 'arith.truncf' of f32; got '!lacis.acc<64x16xbf16>'}}
    %sum = lacis.map %all {
    ^bb0(%e: bf16):
      lacis.yield %e : bf16
    } : !lacis.acc<64x16xbf16> -> !lacis.acc<64x16xbf16>
    lacis.yield
  }
  return
}

// -----

func.func @vector(%x: !llvm.ptr, %i: i32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <1x514xf32>>
  lacis.roles producer {
    %l = lacis.acquire %ring : !lacis.ring<2, <1x514xf32>> -> !lacis.tile<1x514xf32>
    // expected-error @+1 {{tiles: a vector is copied by chunks of 16 bytes, one by each of 128 threads; got '!lacis.tile<1x514xf32>'}}
    lacis.load_tile %x[%i, %i] to %l {shape = [#lacis.size<1>, #lacis.size<514>]} : !llvm.ptr[i32, i32] to !lacis.tile<1x514xf32>
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}
