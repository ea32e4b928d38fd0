// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{a ring has at least 2 stages, not 1}}
func.func private @stages(!lacis.ring<1, <64x64xbf16>>)

// -----

// expected-error@+1 {{a tile has rows and columns, a list of tiles a count before them; got 1 sizes}}
func.func private @rank(!lacis.tile<64xbf16>)

// -----

// expected-error@+1 {{an accumulator holds floating-point numbers, not 'i32'}}
func.func private @integers(!lacis.acc<64x64xi32>)

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @lists(%w: tensor<?x?xbf16, #bsr>, %n: index) {
  // expected-error@+1 {{work lists have the format '(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)'}}
  %0 = lacis.balance %w over %n by 256 raster 4 : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @origin(%w: tensor<?x?xbf16, #bsr>, %n: index) {
  // expected-error@+1 {{needs the result of 'lacis.regroup'}}
  %0 = lacis.origin %w at %n : tensor<?x?xbf16, #bsr>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @presence(%w: tensor<?x?xbf16, #bsr>, %n: index) {
  // expected-error@+1 {{level 1 has more than 32 coordinates}}
  %0 = lacis.presence %w[1] at %n : tensor<?x?xbf16, #bsr>
  return
}

// -----

func.func @mma_in_producer(%t: !lacis.tile<64x64xbf16>, %acc: !lacis.acc<64x64xf32>) {
  lacis.roles producer {
    // expected-error@+1 {{belongs to a consumer}}
    %0 = lacis.mma %t, %t into %acc : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
    lacis.yield
  } consumers 1 (%c : index) {
    lacis.yield
  }
  return
}

// -----

func.func @acquire(%ring: !lacis.ring<2, <64x64xbf16>>) {
  // expected-error@+1 {{gives the tiles of the ring, in order}}
  %0 = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x32xbf16>
  return
}

// -----

func.func @place(%x: tensor<?x?xbf16>, %i: index, %t: !lacis.tile<2x64x64xbf16>) {
  // expected-error@+1 {{a list of tiles, and no other tile, needs the place of one}}
  lacis.load_tile %x[%i, %i] to %t : tensor<?x?xbf16>[index, index] to !lacis.tile<2x64x64xbf16>
  return
}

// -----

func.func @columns(%a: !lacis.tile<64x16xbf16>, %b: !lacis.tile<64x64xbf16>, %acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{a and b must agree in k, or a cover that of b where 'present' is given}}
  %0 = lacis.mma %a, %b into %acc : !lacis.tile<64x16xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

func.func @kind(%acc: !lacis.acc<64x64xf32>) {
  // expected-error@+1 {{kind is 'sum' or 'max', not 'mean'}}
  %0 = lacis.reduce_rows "mean" %acc : !lacis.acc<64x64xf32> -> !lacis.acc<64x1xf32>
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
