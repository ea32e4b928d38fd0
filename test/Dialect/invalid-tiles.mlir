// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What roles and the loads of tiles refuse.

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @presence(%w: tensor<?x?xbf16, #bsr>, %n: index) {
  // expected-error@+1 {{level 1 has more than 32 coordinates}}
  %0 = lacis.presence %w[1] at %n : tensor<?x?xbf16, #bsr>
  return
}

// -----

func.func @consumers() {
  // expected-error@+1 {{needs at least one consumer}}
  lacis.roles producer {
    lacis.yield
  } consumers 0 (%c : index) {
    lacis.yield
  }
  return
}

// -----

func.func @numbers() {
  // expected-error@+1 {{the producer takes no argument, the consumer its number; with groups each takes that of its group besides}}
  lacis.roles producer {
  ^bb0(%n: index):
    lacis.yield
  } consumers 1 (%c : index) {
    lacis.yield
  }
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

func.func @load_in_consumer(%x: tensor<?x?xbf16>, %i: index, %t: !lacis.tile<64x64xbf16>) {
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : index) {
    // expected-error@+1 {{belongs to the producer}}
    lacis.load_tile %x[%i, %i] to %t : tensor<?x?xbf16>[index, index] to !lacis.tile<64x64xbf16>
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

func.func @elements(%x: tensor<?x?xf32>, %i: index, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{element types must agree: 'f32' and 'bf16'}}
  lacis.load_tile %x[%i, %i] to %t : tensor<?x?xf32>[index, index] to !lacis.tile<64x64xbf16>
  return
}

// -----

func.func @indices(%x: tensor<?x?xbf16>, %i: index, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{needs 2 indices: row and column}}
  lacis.load_tile %x[%i] to %t : tensor<?x?xbf16>[index] to !lacis.tile<64x64xbf16>
  return
}

// -----

func.func @pointer(%x: !llvm.ptr, %i: i32, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{'lacis.load_tile' op a pointer needs 'shape'}}
  lacis.load_tile %x[%i, %i] to %t : !llvm.ptr[i32, i32] to !lacis.tile<64x64xbf16>
  return
}

// -----

func.func @place(%x: tensor<?x?xbf16>, %i: index, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{a list of tiles, and no other tile, has a place}}
  lacis.load_tile %x[%i, %i] to %t[%i : index] : tensor<?x?xbf16>[index, index] to !lacis.tile<64x64xbf16>
  return
}

// -----

func.func @run(%x: tensor<?x?xbf16>, %i: index, %t: !lacis.tile<2x64x64xbf16>) {
  // expected-error@+1 {{needs the result of 'lacis.regroup', of the tile's element type}}
  lacis.load_run %x at %i count %i to %t : tensor<?x?xbf16>, index, index to !lacis.tile<2x64x64xbf16>
  return
}

// -----

func.func @run_of_one(%x: !llvm.ptr, %i: i32, %t: !lacis.tile<64x64xbf16>) {
  // expected-error@+1 {{fills a list of tiles}}
  lacis.load_run %x at %i count %i to %t : !llvm.ptr, i32, i32 to !lacis.tile<64x64xbf16>
  return
}
