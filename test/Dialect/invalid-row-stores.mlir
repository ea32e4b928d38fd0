// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// Numbers of rows that are stored.

func.func @rows_of_many(%to: tensor<?xf32>, %acc: !lacis.acc<64x64xf32>, %i: index) {
  // expected-error@+1 {{stores an accumulator of one column of f32}}
  lacis.store_rows %acc to %to[%i] : !lacis.acc<64x64xf32> to tensor<?xf32>[index]
  return
}

// -----

func.func @rows_to_halves(%to: tensor<?xbf16>, %acc: !lacis.acc<64x1xf32>, %i: index) {
  // expected-error@+1 {{stores to a dense tensor of f32, not to 'tensor<?xbf16>'}}
  lacis.store_rows %acc to %to[%i] : !lacis.acc<64x1xf32> to tensor<?xbf16>[index]
  return
}

// -----

func.func @rows_of_two(%to: tensor<?x?xf32>, %acc: !lacis.acc<64x1xf32>, %i: index) {
  // expected-error@+1 {{needs 2 indices, the last of which is that of the first row}}
  lacis.store_rows %acc to %to[%i] : !lacis.acc<64x1xf32> to tensor<?x?xf32>[index]
  return
}

// -----

func.func @rows_without_end(%to: !llvm.ptr, %acc: !lacis.acc<64x1xf32>, %i: index) {
  // expected-error@+1 {{a pointer needs one index, and where rows end}}
  lacis.store_rows %acc to %to[%i] : !lacis.acc<64x1xf32> to !llvm.ptr[index]
  return
}
