// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: lacis-opt %t/both.mlir -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper
// RUN: lacis-opt %t/both.mlir -split-input-file -verify-diagnostics -lacis-lower-tiles-ampere=shared=101376
// RUN: lacis-opt %t/ampere.mlir -split-input-file -verify-diagnostics -lacis-lower-tiles-ampere=shared=101376

// Roles that neither architecture has instructions for; ampere.mlir: that sm_80 has none for.

//--- both.mlir
func.func @twice() attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  // expected-error @+1 {{tiles: a kernel has roles once}}
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}

// -----

func.func @foreign(%zero: f32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: 'builtin.unrealized_conversion_cast' has no place inside a role}}
    %0 = builtin.unrealized_conversion_cast %acc : !lacis.acc<64x64xf32> to f32
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
    // expected-error @+1 {{tiles: columns are taken by eight, from a multiple of eight}}
    %0 = lacis.columns %acc from 4 : !lacis.acc<64x64xf32> to !lacis.acc<64x8xf32>
    lacis.yield
  }
  return
}

// -----

#size = #lacis.size<arg 1>
func.func @groups(%x: !llvm.ptr, %n: i32, %zero: f32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: groups of 4 rows are stored; groups of 8 or a multiple can be}}
    lacis.store_blocks %acc to %x[%n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n] {shape = [#size, #size], type = bf16}
        : !lacis.acc<64x64xf32> to !llvm.ptr[i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32]
    lacis.yield
  }
  return
}

// -----

func.func @vector_of_bytes(%v: !llvm.ptr, %n: i32, %size: i32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    // expected-error @+1 {{tiles: columns are loaded from a vector of f32, bf16 or f16; got 'i8'}}
    %0 = lacis.load_columns %v[%n] of %size : i32 {type = i8} : !llvm.ptr[i32] to !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}

// -----

func.func @vector_read_twice(%v: !llvm.ptr, %n: i32, %size: i32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    // expected-error @+1 {{tiles: a vector along the columns is read by maps, and by nothing else}}
    %0 = lacis.load_columns %v[%n] of %size : i32 {type = f32} : !llvm.ptr[i32] to !lacis.acc<64x64xf32>
    %1 = lacis.columns %0 from 0 : !lacis.acc<64x64xf32> to !lacis.acc<64x8xf32>
    lacis.yield
  }
  return
}

//--- ampere.mlir
func.func @entries(%x: !llvm.ptr, %n: i32, %zero: f32) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    %bits = lacis.load_entries %x[%n] from %n of %n stride 64 : !llvm.ptr[i32] from i32 of i32 to !lacis.acc<64x64xf32>
    // expected-error @+1 {{tiles: only what is stored, and nothing else, may read entries}}
    %0 = lacis.map %acc, %bits {
    ^bb0(%e: f32, %bit: f32):
      lacis.yield %e : f32
    } : !lacis.acc<64x64xf32>, !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
    lacis.yield
  }
  return
}
