// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What an epilogue reads and stores, and what that refuses.

func.func @read(%t: !lacis.tile<32x64xbf16>) {
  // expected-error@+1 {{the accumulator has the rows and columns of the tile}}
  %0 = lacis.read_tile %t : !lacis.tile<32x64xbf16> to !lacis.acc<64x32xf32>
  return
}

// -----

func.func @place(%t: !lacis.tile<2x64x64xbf16>) {
  // expected-error@+1 {{'lacis.read_tile' op a list of tiles, and no other tile, needs the place of one}}
  %0 = lacis.read_tile %t transposed : !lacis.tile<2x64x64xbf16> to !lacis.acc<64x64xf32>
  return
}

// -----

func.func @columns(%bias: tensor<?xf32>, %i: index) {
  // expected-error@+1 {{gives an accumulator of one column}}
  %0 = lacis.load_rows %bias[%i] : tensor<?xf32>[index] to !lacis.acc<64x2xf32>
  return
}

// -----

func.func @rows(%bias: tensor<f32>, %i: index) {
  // expected-error@+1 {{needs a dense vector}}
  %0 = lacis.load_rows %bias[%i] : tensor<f32>[index] to !lacis.acc<64x1xf32>
  return
}

// -----

#kept = #lacis.format<(b, i) -> (b floordiv 128 : dense, i floordiv 64 : dense, i mod 64 : dense, b mod 128 : dense)>
func.func @acc(%n: index) {
  %kept = lacis.workspace(%n, %n) : tensor<?x?xf32, #kept>
  // expected-error@+1 {{needs a workspace in tiles of the rows and columns of the accumulator, and of its type}}
  %0 = lacis.load_acc %kept at %n : tensor<?x?xf32, #kept>, index to !lacis.acc<64x256xf32>
  return
}

// -----

#kept = #lacis.format<(b, i) -> (b floordiv 128 : dense, i floordiv 64 : dense, i mod 64 : dense, b mod 128 : dense)>
func.func @kept(%n: index, %acc: !lacis.acc<64x256xf32>) {
  %kept = lacis.workspace(%n, %n) : tensor<?x?xf32, #kept>
  // expected-error@+1 {{needs a workspace in tiles of the rows and columns of the accumulator, and of its type}}
  lacis.store_acc %acc to %kept at %n : !lacis.acc<64x256xf32> to tensor<?x?xf32, #kept>, index
  return
}

// -----

func.func @onto(%kept: !llvm.ptr, %n: i32, %acc: !lacis.acc<64x256xf32>) {
  // expected-error@+1 {{adds to an accumulator of its own type}}
  %0 = lacis.load_acc %kept at %n : !llvm.ptr, i32 onto %acc : !lacis.acc<64x256xf32> to !lacis.acc<64x128xf32>
  return
}

// -----

func.func @pointer_to_rows(%bias: !llvm.ptr, %i: i32) {
  // expected-error@+1 {{a pointer needs its size and 'type'}}
  %0 = lacis.load_rows %bias[%i] : !llvm.ptr[i32] to !lacis.acc<64x1xf32>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, i mod 32 : dense, j mod 32 : dense)>
func.func @slots(%acc: !lacis.acc<64x32xf32>, %dw: tensor<?x?xbf16, #bsr>, %i: index) {
  // expected-error@+1 {{the rows of the accumulator are as many groups as there are slots}}
  lacis.store_blocks %acc to %dw[%i, %i, %i] : !lacis.acc<64x32xf32> to tensor<?x?xbf16, #bsr>[index, index, index]
  return
}

// -----

func.func @pointer_to_blocks(%acc: !lacis.acc<64x32xf32>, %dw: !llvm.ptr, %i: i32) {
  // expected-error@+1 {{'lacis.store_blocks' op a pointer needs 'shape' and 'type'}}
  lacis.store_blocks %acc to %dw[%i, %i] : !lacis.acc<64x32xf32> to !llvm.ptr[i32, i32]
  return
}

// -----

func.func @dense_blocks(%acc: !lacis.acc<64x32xf32>, %dw: tensor<?x?xbf16>, %i: index) {
  // expected-error@+1 {{the target is sampled on a pattern with stored blocks}}
  lacis.store_blocks %acc to %dw[%i, %i] : !lacis.acc<64x32xf32> to tensor<?x?xbf16>[index, index]
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @values(%acc: !lacis.acc<64x64xf32>, %dw: tensor<?x?xbf16, #bsr>, %i: index) {
  // expected-error@+1 {{needs 3 indices: position, row and column}}
  lacis.store_tile %acc to %dw[%i, %i] : !lacis.acc<64x64xf32> to tensor<?x?xbf16, #bsr>[index, index]
  return
}

// -----

func.func @pointer_to_tile(%acc: !lacis.acc<64x64xf32>, %y: !llvm.ptr, %i: i32) {
  // expected-error@+1 {{'lacis.store_tile' op a pointer needs 'shape' and 'type'}}
  lacis.store_tile %acc to %y[%i, %i] : !lacis.acc<64x64xf32> to !llvm.ptr[i32, i32]
  return
}
