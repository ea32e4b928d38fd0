// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What products of tiles refuse.

!tile = !lacis.tile<64x64xbf16>
!list = !lacis.tile<2x64x64xbf16>
!acc = !lacis.acc<64x64xf32>
func.func @place(%a: !list, %b: !tile, %acc: !acc) {
  // expected-error@+1 {{a list of tiles, and no other tile, needs the place of the first}}
  %0 = lacis.mma %a transposed, %b into %acc : !list, !tile into !acc
  return
}

// -----

!tile = !lacis.tile<64x64xbf16>
!acc = !lacis.acc<64x64xf32>
func.func @present(%a: !tile, %bits: i32, %acc: !acc) {
  // expected-error@+1 {{present: a must be a list of tiles}}
  %0 = lacis.mma %a present %bits, %a into %acc : !tile, !tile into !acc
  return
}

// -----

!acc = !lacis.acc<64x64xf32>
func.func @elements(%a: !lacis.tile<64x64xbf16>, %b: !lacis.tile<64x64xf16>, %acc: !acc) {
  // expected-error@+1 {{element types of the tiles must agree: 'bf16' and 'f16'}}
  %0 = lacis.mma %a, %b into %acc : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xf16> into !acc
  return
}

// -----

func.func @columns(%a: !lacis.tile<64x16xbf16>, %b: !lacis.tile<64x64xbf16>, %acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{a and b must agree in k, or a cover that of b where 'present' is given}}
  %0 = lacis.mma %a, %b into %acc : !lacis.tile<64x16xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

// A transposed tile has its rows along k.
func.func @depth(%a: !lacis.tile<32x64xbf16>, %b: !lacis.tile<64x64xbf16>, %acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{a and b must agree in k, or a cover that of b where 'present' is given}}
  %0 = lacis.mma %a transposed, %b into %acc : !lacis.tile<32x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

// Side by side, two tiles of 64 columns give 128 columns, not 256.
func.func @beside(%a: !lacis.tile<64x64xbf16>, %b: !lacis.tile<2x64x64xbf16>, %n: index, %acc: !lacis.acc<64x256xf32>) {
  // expected-error@+1 {{a gives the rows of the accumulator, and b its columns: by the rows of tiles, or by the columns of transposed ones}}
  %0 = lacis.mma %a transposed, %b[%n : index] transposed into %acc : !lacis.tile<64x64xbf16>, !lacis.tile<2x64x64xbf16> into !lacis.acc<64x256xf32>
  return
}

// -----

// A list without a place follows along k: its two tiles of 32 rows are not one below the other.
func.func @below(%a: !lacis.tile<64x64xbf16>, %b: !lacis.tile<2x32x64xbf16>, %acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{a gives the rows of the accumulator, and b its columns: by the rows of tiles, or by the columns of transposed ones}}
  %0 = lacis.mma %a, %b into %acc : !lacis.tile<64x64xbf16>, !lacis.tile<2x32x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

func.func @complete(%acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{gives what it takes, type by type}}
  %0 = lacis.complete %acc : !lacis.acc<64x64xf32> -> !lacis.acc<64x32xf32>
  return
}
