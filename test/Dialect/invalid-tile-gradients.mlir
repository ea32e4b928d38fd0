// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// A transposed tile has its rows along k.
func.func @depth(%a: !lacis.tile<32x64xbf16>, %b: !lacis.tile<64x64xbf16>, %acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{a and b must agree in k, or a cover that of b where 'present' is given}}
  %0 = lacis.mma %a transposed, %b into %acc : !lacis.tile<32x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

// Side by side, two tiles of 64 columns give 128 columns, not 256.
func.func @beside(%a: !lacis.tile<64x64xbf16>, %b: !lacis.tile<2x64x64xbf16>, %n: index, %acc: !lacis.acc<64x256xf32>) {
  // expected-error@+1 {{a gives the rows of the accumulator, and b its columns: by the rows of a tile, or by the columns of transposed ones}}
  %0 = lacis.mma %a transposed, %b[%n : index] transposed into %acc : !lacis.tile<64x64xbf16>, !lacis.tile<2x64x64xbf16> into !lacis.acc<64x256xf32>
  return
}

// -----

func.func @range(%acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{columns 32 to 96 of 64}}
  %0 = lacis.columns %acc from 32 : !lacis.acc<64x64xf32> to !lacis.acc<64x64xf32>
  return
}

// -----

func.func @read(%t: !lacis.tile<32x64xbf16>) {
  // expected-error@+1 {{the accumulator has the rows and columns of the tile}}
  %0 = lacis.read_tile %t : !lacis.tile<32x64xbf16> to !lacis.acc<64x32xf32>
  return
}

// -----

func.func @rows(%bias: tensor<?x?xf32>, %i: index) {
  // expected-error@+1 {{needs a dense vector}}
  %0 = lacis.load_rows %bias[%i] : tensor<?x?xf32>[index] to !lacis.acc<64x1xf32>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @values(%acc: !lacis.acc<64x64xf32>, %dw: tensor<?x?xbf16, #bsr>, %i: index) {
  // expected-error@+1 {{needs position, row and column}}
  lacis.store_tile %acc to %dw[%i, %i] : !lacis.acc<64x64xf32> to tensor<?x?xbf16, #bsr>[index, index]
  return
}
