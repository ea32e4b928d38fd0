// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper

// Boxes that sm_90a does not copy.

#size = #lacis.size<arg 1>
func.func @float64(%x: !llvm.ptr, %n: i32, %zero: f32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: stores are of a multiple of 16 columns, to bf16 or f16; got '!lacis.acc<64x64xf32>' to 'f64'}}
    lacis.store_tile %acc to %x[%n, %n] {shape = [#size, #size], type = f64} : !lacis.acc<64x64xf32> to !llvm.ptr[i32, i32]
    lacis.yield
  }
  return
}

// -----

#size = #lacis.size<arg 1>
func.func @computed(%x: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  lacis.roles producer {
    %t = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    %p = llvm.getelementptr %x[%n] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    // expected-error @+1 {{tiles: a box is loaded from, or stored to, an argument of the kernel}}
    lacis.load_tile %p[%n, %n] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x64xbf16>
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}

// -----

#size = #lacis.size<arg 1>
func.func @box(%x: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <320x64xbf16>>
  lacis.roles producer {
    %t = lacis.acquire %ring : !lacis.ring<2, <320x64xbf16>> -> !lacis.tile<320x64xbf16>
    // expected-error @+1 {{tiles: a box of 320 rows of 128 bytes; it may have 256 rows of 32, 64 or 128 bytes}}
    lacis.load_tile %x[%n, %n] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<320x64xbf16>
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}

// -----

#size = #lacis.size<arg 1>
func.func @of_nothing(%x: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  lacis.roles producer {
    %t = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    // expected-error @+1 {{tiles: a box needs 'lacis.artifact', which lists the kernel's arguments, and two sizes}}
    lacis.load_tile %x[%n, %n] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x64xbf16>
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}
