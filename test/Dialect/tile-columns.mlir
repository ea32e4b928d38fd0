// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// Vectors by column, and places that are kept beyond the next one.
!ring = !lacis.ring<2, <64x64xbf16>, <1x64xf32>>
!tile = !lacis.tile<64x64xbf16>
!line = !lacis.tile<1x64xf32>

// CHECK-LABEL: func @vector(
func.func @vector(%x: tensor<?xf32>, %i: index) {
  %ring = lacis.ring : !ring
  lacis.roles producer {
    %t, %l = lacis.acquire %ring : !ring -> !tile, !line
    // CHECK: lacis.load_tile %{{.*}}[%{{.*}}] to %{{.*}}#1 : tensor<?xf32>[index] to !lacis.tile<1x64xf32>
    lacis.load_tile %x[%i] to %l : tensor<?xf32>[index] to !line
    lacis.yield
  } consumers 1 (%c : index) {
    // CHECK: %[[LINE:.*]]:2 = lacis.acquire %[[RING:.*]] :
    %t, %l = lacis.acquire %ring : !ring -> !tile, !line
    // CHECK: lacis.read_columns %[[LINE]]#1 : !lacis.tile<1x64xf32> to !lacis.acc<64x64xf32>
    %start = lacis.read_columns %l : !line to !lacis.acc<64x64xf32>
    // CHECK: %{{.*}} = lacis.advance %[[RING]] : !lacis.ring<2, <64x64xbf16>, <1x64xf32>>
    %next = lacis.advance %ring : !ring
    // CHECK: %{{.*}}:2 = lacis.revisit %[[RING]] : {{.*}} -> !lacis.tile<64x64xbf16>, !lacis.tile<1x64xf32>
    %u, %m = lacis.revisit %ring : !ring -> !tile, !line
    lacis.yield
  }
  return
}

// -----

func.func @into_a_matrix(%x: tensor<?xf32>, %i: index, %t: !lacis.tile<64x64xf32>) {
  // expected-error@+1 {{loads a vector into a tile of one row}}
  lacis.load_tile %x[%i] to %t : tensor<?xf32>[index] to !lacis.tile<64x64xf32>
  return
}

// -----

func.func @into_a_list(%x: tensor<?xf32>, %i: index, %t: !lacis.tile<2x1x64xf32>) {
  // expected-error@+1 {{loads a vector into a tile of one row}}
  lacis.load_tile %x[%i] to %t : tensor<?xf32>[index] to !lacis.tile<2x1x64xf32>
  return
}

// -----

func.func @indices(%x: tensor<?xf32>, %i: index, %t: !lacis.tile<1x64xf32>) {
  // expected-error@+1 {{needs 1 index: the first}}
  lacis.load_tile %x[%i, %i] to %t : tensor<?xf32>[index, index] to !lacis.tile<1x64xf32>
  return
}

// -----

func.func @rows(%t: !lacis.tile<2x64xf32>) {
  // expected-error@+1 {{reads a tile of one row, with the columns of the accumulator}}
  %0 = lacis.read_columns %t : !lacis.tile<2x64xf32> to !lacis.acc<64x64xf32>
  return
}

// -----

func.func @columns(%t: !lacis.tile<1x32xf32>) {
  // expected-error@+1 {{reads a tile of one row, with the columns of the accumulator}}
  %0 = lacis.read_columns %t : !lacis.tile<1x32xf32> to !lacis.acc<64x64xf32>
  return
}

// -----

func.func @type(%t: !lacis.tile<1x64xbf16>) {
  // expected-error@+1 {{gives what the tile holds}}
  %0 = lacis.read_columns %t : !lacis.tile<1x64xbf16> to !lacis.acc<64x64xf32>
  return
}

// -----

func.func @tiles(%ring: !lacis.ring<2, <64x64xbf16>>) {
  // expected-error@+1 {{gives the tiles of the ring, in order}}
  %t = lacis.revisit %ring : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<32x64xbf16>
  return
}

// -----

func.func @producer() {
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  lacis.roles producer {
    // expected-error@+1 {{'lacis.advance' op belongs to a consumer}}
    %next = lacis.advance %ring : !lacis.ring<2, <64x64xbf16>>
    lacis.yield
  } consumers 1 (%c : index) {
    lacis.yield
  }
  return
}
