// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What is refused of products whose left side is an accumulator, of maps at coordinates, of stores
// through tiles and of groups of roles.

func.func @placed(%a: !lacis.acc<64x64xbf16>, %b: !lacis.tile<64x64xbf16>, %n: index) {
  // expected-error@+1 {{an accumulator as a is taken whole, as it lies, and in its own type}}
  %0 = lacis.mma %a transposed, %b : !lacis.acc<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

func.func @depth(%a: !lacis.acc<64x32xbf16>, %b: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{an accumulator as a has the rows of the result, and as columns the k of b, in its type}}
  %0 = lacis.mma %a, %b : !lacis.acc<64x32xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

func.func @type(%a: !lacis.acc<64x64xf16>, %b: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{an accumulator as a has the rows of the result, and as columns the k of b, in its type}}
  %0 = lacis.mma %a, %b : !lacis.acc<64x64xf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

// Two tiles of 64 columns do not cover one.
func.func @list(%a: !lacis.tile<2x64x64xbf16>, %b: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{a and b must agree in k}}
  %0 = lacis.mma %a, %b : !lacis.tile<2x64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
  return
}

// -----

func.func @row(%acc: !lacis.acc<64x64xf32>, %i: index) {
  // expected-error@+1 {{is 'at' a row and a column}}
  %0 = lacis.map %acc at [%i : index] {
  ^bb0(%e: f32, %n: index):
    lacis.yield %e : f32
  } : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
  return
}

// -----

func.func @coordinates(%acc: !lacis.acc<64x64xf32>, %i: index) {
  // expected-error@+1 {{the last arguments of the body are coordinates, of the types of those that the map is 'at'}}
  %0 = lacis.map %acc at [%i, %i : index, index] {
  ^bb0(%e: f32, %n: index, %m: i32):
    lacis.yield %e : f32
  } : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
  return
}

// -----

func.func @slot(%acc: !lacis.acc<64x64xf32>, %y: tensor<?x?xbf16>, %i: index) {
  // expected-error@+1 {{is staged from a tile on only where it is 'through' a list}}
  lacis.store_tile %acc to %y[%i, %i] from %i : index : !lacis.acc<64x64xf32> to tensor<?x?xbf16>[index, index]
  return
}

// -----

func.func @through(%acc: !lacis.acc<64x128xf32>, %t: !lacis.tile<64x64xbf16>, %y: tensor<?x?xbf16>, %i: index) {
  // expected-error@+1 {{is staged in tiles that have the rows of the accumulator and, side by side, its columns}}
  lacis.store_tile %acc to %y[%i, %i] through %t : !lacis.tile<64x64xbf16> : !lacis.acc<64x128xf32> to tensor<?x?xbf16>[index, index]
  return
}

// -----

func.func @groups() {
  // expected-error@+1 {{needs at least one group}}
  lacis.roles groups 0 producer {
    lacis.yield
  } consumers 1 (%c : index) {
    lacis.yield
  }
  return
}

// -----

func.func @read(%t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{gives float32, or what the tile holds}}
  %0 = lacis.read_tile %t : !lacis.tile<64x64xbf16> to !lacis.acc<64x64xf16>
  return
}
