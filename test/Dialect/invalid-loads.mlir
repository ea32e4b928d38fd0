// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// Loads that fill a tile together have equal parts of it.

func.func @behind(%x: tensor<?x?xbf16>, %i: index, %t: !lacis.tile<64x64xbf16>) {
  // expected-error @below {{'part' is the number of a part, and how many equal ones the 64 rows of the tile have}}
  lacis.load_tile %x[%i, %i] to %t {part = array<i64: 2, 2>} : tensor<?x?xbf16>[index, index] to !lacis.tile<64x64xbf16>
  return
}

// -----

func.func @columns(%x: tensor<?xf32>, %i: index, %t: !lacis.tile<1x64xf32>) {
  // expected-error @below {{'part' is the number of a part, and how many equal ones the 64 columns of the tile have}}
  lacis.load_tile %x[%i] to %t {part = array<i64: 0, 3>} : tensor<?xf32>[index] to !lacis.tile<1x64xf32>
  return
}

// -----

func.func @one(%x: tensor<?x?xbf16>, %i: index, %t: !lacis.tile<64x64xbf16>) {
  // expected-error @below {{'part' is the number of a part}}
  lacis.load_tile %x[%i, %i] to %t {part = array<i64: 1>} : tensor<?x?xbf16>[index, index] to !lacis.tile<64x64xbf16>
  return
}
