// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

func.func @no_batch(%x: tensor<?x?xbf16>, %n: index, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{needs 2 indices: row and column}}
  lacis.load_tile %x[%n, %n, %n] to %t : tensor<?x?xbf16>[index, index, index] to !lacis.tile<64x64xbf16>
  return
}

// -----

func.func @more(%x: tensor<?x?x?xbf16>, %n: index, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{needs 3 indices: matrix, row and column}}
  lacis.load_tile %x[%n] to %t : tensor<?x?x?xbf16>[index] to !lacis.tile<64x64xbf16>
  return
}

// -----

#size = #lacis.size<64>
func.func @pointer(%x: !llvm.ptr, %n: i32, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{needs 3 indices: matrix, row and column}}
  lacis.load_tile %x[%n, %n] to %t {shape = [#size, #size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x64xbf16>
  return
}

// -----

#size = #lacis.size<64>
func.func @strides(%x: !llvm.ptr, %n: i32, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{'strides' are those of a pointer's axes but the last, each of which has an index}}
  lacis.load_tile %x[%n, %n, %n] to %t {shape = [#size, #size, #size], strides = [#size]} : !llvm.ptr[i32, i32, i32] to !lacis.tile<64x64xbf16>
  return
}

// -----

#heads = #lacis.format<(h, i, j) -> (h : batch, i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @copies(%dw: tensor<?x?x?xbf16, #heads>, %n: index, %acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{needs 4 indices: copy, position, row and column}}
  lacis.store_tile %acc to %dw[%n, %n, %n] : !lacis.acc<64x64xf32> to tensor<?x?x?xbf16, #heads>[index, index, index]
  return
}

// -----

#heads = #lacis.format<(h, i, j) -> (h : batch, i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @blocks(%dw: tensor<?x?x?xbf16, #heads>, %n: index, %acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{says which copy of the values it means, by 'batch'}}
  lacis.store_blocks %acc to %dw[%n] : !lacis.acc<64x64xf32> to tensor<?x?x?xbf16, #heads>[index]
  return
}

// -----

func.func @vector(%v: tensor<bf16>, %n: index) {
  // expected-error@+1 {{needs a dense vector}}
  %0 = lacis.load_columns %v[%n] : tensor<bf16>[index] to !lacis.acc<64x64xf32>
  return
}
