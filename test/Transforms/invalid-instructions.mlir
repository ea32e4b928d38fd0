// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: lacis-opt %t/both.mlir -verify-diagnostics -lacis-lower-tiles-hopper
// RUN: lacis-opt %t/both.mlir -verify-diagnostics -lacis-lower-tiles-ampere=shared=101376
// RUN: lacis-opt %t/hopper.mlir -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper
// RUN: lacis-opt %t/ampere.mlir -split-input-file -verify-diagnostics -lacis-lower-tiles-ampere=shared=101376

// Tiles and numbers that the instructions of an architecture do not take.

//--- both.mlir
func.func @rows(%x: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    // expected-error @+1 {{tiles: rows are loaded from a vector of f32, bf16 or f16; got 'f64'}}
    %0 = lacis.load_rows %x[%n] of %n : i32 {type = f64} : !llvm.ptr[i32] to !lacis.acc<64x1xf32>
    lacis.yield
  }
  return
}

//--- hopper.mlir
func.func @mma(%zero: f32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x32xf32>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t = lacis.acquire %ring : !lacis.ring<2, <64x32xf32>> -> !lacis.tile<64x32xf32>
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: rows of bf16 or f16 tiles have 16, 32 or 64 elements; got '!lacis.tile<64x32xf32>'}}
    %0 = lacis.mma %t, %t into %acc : !lacis.tile<64x32xf32>, !lacis.tile<64x32xf32> into !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}

// -----

func.func @read() attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x64xf32>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t = lacis.acquire %ring : !lacis.ring<2, <64x64xf32>> -> !lacis.tile<64x64xf32>
    // expected-error @+1 {{tiles: rows of bf16 or f16 tiles have 16, 32 or 64 elements; got '!lacis.tile<64x64xf32>'}}
    %0 = lacis.read_tile %t : !lacis.tile<64x64xf32> to !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}

// -----

func.func @entries(%x: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    // expected-error @+1 {{tiles: the validity bitmap has an even number of columns; got 33}}
    %0 = lacis.load_entries %x[%n] from %n of %n stride 33 : !llvm.ptr[i32] from i32 of i32 to !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}

//--- ampere.mlir
#size = #lacis.size<arg 1>
func.func @load(%x: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x64xf32>>
  lacis.roles producer {
    %t = lacis.acquire %ring : !lacis.ring<2, <64x64xf32>> -> !lacis.tile<64x64xf32>
    // expected-error @+1 {{tiles: rows of bf16, f16 or f32 tiles have 32, 64 or 128 bytes, and there are 8, 16 or 32 of such rows, or a multiple; got '!lacis.tile<64x64xf32>'}}
    lacis.load_tile %x[%n, %n] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x64xf32>
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}

// -----

func.func @read() attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <2x64x32xf32>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %t = lacis.acquire %ring : !lacis.ring<2, <2x64x32xf32>> -> !lacis.tile<2x64x32xf32>
    // expected-error @+1 {{tiles: what is read of a tile has rows of 16, 32 or 64 elements of bf16 or f16; got '!lacis.tile<2x64x32xf32>'}}
    %0 = lacis.read_tile %t : !lacis.tile<2x64x32xf32> to !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}

// -----

#size = #lacis.size<arg 1>
func.func @store(%x: !llvm.ptr, %n: i32, %zero: f32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: stores are to bf16, f16 or f32; got 'f64'}}
    lacis.store_tile %acc to %x[%n, %n] {shape = [#size, #size], type = f64} : !lacis.acc<64x64xf32> to !llvm.ptr[i32, i32]
    lacis.yield
  }
  return
}
