// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper | FileCheck %s

// Two halves share a register: where an accumulator holds one number everywhere, and where a map reads them.
// CHECK-LABEL: func @halves(
// CHECK:       %[[BITS:.*]] = arith.bitcast %{{.*}} : bf16 to i16
// CHECK:       %[[WORD:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK:       %[[HIGH:.*]] = arith.shli %[[WORD]]
// CHECK:       %[[PAIR:.*]] = arith.ori %[[WORD]], %[[HIGH]] : i32
// CHECK:       %[[TWO:.*]] = llvm.bitcast %[[PAIR]] : i32 to vector<2xbf16>
// CHECK:       llvm.extractelement %[[TWO]]
// CHECK-COUNT-4: cvt.rn.bf16x2.f32
func.func @halves(%half: bf16) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %all = lacis.splat %half : bf16 to !lacis.acc<64x16xbf16>
    %sum = lacis.map %all {
    ^bb0(%e: bf16):
      %f = arith.extf %e : bf16 to f32
      %g = arith.addf %f, %f : f32
      %h = arith.truncf %g : f32 to bf16
      lacis.yield %h : bf16
    } : !lacis.acc<64x16xbf16> -> !lacis.acc<64x16xbf16>
    lacis.yield
  }
  return
}

// -----

func.func @columns(%half: bf16) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    // expected-error @+1 {{tiles: registers hold 64 rows of bf16 or f16, and a multiple of 16 columns; got '!lacis.acc<64x8xbf16>'}}
    %all = lacis.splat %half : bf16 to !lacis.acc<64x8xbf16>
    lacis.yield
  }
  return
}

// -----

func.func @number(%single: f32) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    // expected-error @+1 {{tiles: registers hold a number of the accumulator's type; got 'f32'}}
    %all = lacis.splat %single : f32 to !lacis.acc<64x16xbf16>
    lacis.yield
  }
  return
}

// -----

#size = #lacis.size<64>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "vector", shared = 0 : i64}]}} {
func.func @vector(%x: !llvm.ptr, %i: i32) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  %ring = lacis.ring : !lacis.ring<2, <1x512xf32>>
  lacis.roles producer {
    %l = lacis.acquire %ring : !lacis.ring<2, <1x512xf32>> -> !lacis.tile<1x512xf32>
    // expected-error @+1 {{tiles: a part of a vector of 512 elements, 2048 bytes; it may have 256 elements, and a multiple of 16 bytes}}
    lacis.load_tile %x[%i, %i] to %l {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<1x512xf32>
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}
}
