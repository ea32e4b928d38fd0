// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper

// What chains of products need on sm_90a.

!ring = !lacis.ring<2, <64x64xbf16>>
func.func @early() attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !ring
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t = lacis.acquire %ring : !ring -> !lacis.tile<64x64xbf16>
    // expected-error @+1 {{tiles: a product that begins at 0, or whose a is an accumulator, is complete in the block that begins it, and before its stage is released}}
    %s = lacis.mma %t, %t : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
    %next = lacis.release %ring : !ring
    %done = lacis.complete %s : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}

// -----

func.func @columns(%zero: bf16) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x8xbf16>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t = lacis.acquire %ring : !lacis.ring<2, <64x8xbf16>> -> !lacis.tile<64x8xbf16>
    %all = lacis.splat %zero : bf16 to !lacis.acc<64x16xbf16>
    %a = lacis.columns %all from 0 : !lacis.acc<64x16xbf16> to !lacis.acc<64x8xbf16>
    // expected-error @+1 {{tiles: registers hold 64 rows of bf16 or f16, and a multiple of 16 columns; got '!lacis.acc<64x8xbf16>'}}
    %s = lacis.mma %a, %t : !lacis.acc<64x8xbf16>, !lacis.tile<64x8xbf16> into !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}

// -----

func.func @rounded(%zero: f32, %half: bf16) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %a = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: registers hold what a map rounds last, by 'arith.truncf' of f32; got '!lacis.acc<64x64xbf16>'}}
    %b = lacis.map %a {
    ^bb0(%e: f32):
      lacis.yield %half : bf16
    } : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xbf16>
    lacis.yield
  }
  return
}

// -----

func.func @groups() attributes {lacis.gpu_kernel} {
  // expected-error @+1 {{tiles: the producers of 5 groups; four warps load, one a group}}
  lacis.roles groups 5 producer (%g : i32) {
    lacis.yield
  } consumers 1 (%c : i32, %g : i32) {
    lacis.yield
  }
  return
}

// -----

#size = #lacis.size<arg 1>
func.func @unread(%y: !llvm.ptr, %n: i32, %zero: f32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    %a = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: a store goes through a tile that awaited products alone have read, and before its stage is released}}
    lacis.store_tile %a to %y[%n, %n] through %t : !lacis.tile<64x64xbf16> {shape = [#size, #size], type = bf16} : !lacis.acc<64x64xf32> to !llvm.ptr[i32, i32]
    lacis.yield
  }
  return
}

// -----

func.func @held() attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <32x64xbf16>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t = lacis.acquire %ring : !lacis.ring<2, <32x64xbf16>> -> !lacis.tile<32x64xbf16>
    // expected-error @+1 {{tiles: registers hold 64 rows of bf16 or f16, and a multiple of 16 columns; got '!lacis.acc<32x64xbf16>'}}
    %0 = lacis.read_tile %t : !lacis.tile<32x64xbf16> to !lacis.acc<32x64xbf16>
    lacis.yield
  }
  return
}
