// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What functions of accumulators refuse.

func.func @yielded(%acc: !lacis.acc<64x64xf32>, %x: f16) {
  // expected-error@+1 {{body must yield one 'f32'}}
  %0 = lacis.map %acc {
  ^bb0(%e: f32):
    lacis.yield %x : f16
  } : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
  return
}

// -----

func.func @count(%acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{body needs one argument for each operand}}
  %0 = lacis.map %acc {
  ^bb0(%e: f32, %m: f32):
    lacis.yield %e : f32
  } : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
  return
}

// -----

func.func @elements(%acc: !lacis.acc<64x64xf32>, %x: f32) {
  // expected-error@+1 {{arguments of the body are elements of the operands}}
  %0 = lacis.map %acc {
  ^bb0(%e: f16):
    lacis.yield %x : f32
  } : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
  return
}

// -----

func.func @map(%acc: !lacis.acc<64x64xf32>, %other: !lacis.acc<64x2xf32>) {
  // expected-error@+1 {{operands have the shape of the result, or its rows and one column}}
  %0 = lacis.map %acc, %other {
  ^bb0(%e: f32, %m: f32):
    lacis.yield %e : f32
  } : !lacis.acc<64x64xf32>, !lacis.acc<64x2xf32> -> !lacis.acc<64x64xf32>
  return
}

// -----

func.func @kind(%acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{kind is 'sum' or 'max', not 'mean'}}
  %0 = lacis.reduce_rows "mean" %acc : !lacis.acc<64x64xf32> -> !lacis.acc<64x1xf32>
  return
}

// -----

func.func @rows(%acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{gives one number for each row, or four parts of it}}
  %0 = lacis.reduce_rows "sum" %acc : !lacis.acc<64x64xf32> -> !lacis.acc<64x2xf32>
  return
}

// -----

func.func @columns(%acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{rows and element type stay what they are}}
  %0 = lacis.columns %acc from 0 : !lacis.acc<64x64xf32> to !lacis.acc<32x64xf32>
  return
}

// -----

func.func @range(%acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{columns 32 to 96 of 64}}
  %0 = lacis.columns %acc from 32 : !lacis.acc<64x64xf32> to !lacis.acc<64x64xf32>
  return
}
