// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What shares within some columns, and products of gathered parts, refuse.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @span(%w: tensor<?x?xbf16, #bsr>, %n: index) {
  // expected-error@+1 {{lists are 'over' an extent where a '#lacis.tile_schedule' has no period, and only there}}
  %0 = lacis.balance #lacis.segment_schedule<length = 256, span = 640, cost = #cost> of %w over %n : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @counts(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{work lists have the format '(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)' and 'singleton' levels behind, 2 in all}}
  %0 = lacis.balance #lacis.segment_schedule<length = 16, span = 640, cost = #cost> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @parts(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{segment_schedule: sums are split into up to so many parts, at least 2}}
  %0 = lacis.balance #lacis.segment_schedule<length = 16, split = 1, cost = #cost> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @part_lists(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{b : singleton)', with 'g : dense' before and 'singleton' levels behind, 4 in all}}
  %0 = lacis.balance #lacis.segment_schedule<length = 8, split = 4, cost = #cost> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

func.func @gathered(%t: !lacis.tile<8x32x64xbf16>, %acc: !lacis.acc<64x64xf32>, %n: index) {
  // expected-error@+1 {{the columns of the accumulator are as many groups as 'columns', and its rows as many as each of them has in 'rows'}}
  %0 = lacis.mma_gathered %t[%n, %n, %n], %t[%n, %n] into %acc : !lacis.tile<8x32x64xbf16>[index, index, index], !lacis.tile<8x32x64xbf16>[index, index] into !lacis.acc<64x64xf32>
  return
}

// -----

func.func @gathered_from_one(%t: !lacis.tile<32x64xbf16>, %acc: !lacis.acc<64x64xf32>, %n: index) {
  // expected-error@+1 {{needs two lists of transposed tiles that agree in k and in their type}}
  %0 = lacis.mma_gathered %t[%n], %t[%n] into %acc : !lacis.tile<32x64xbf16>[index], !lacis.tile<32x64xbf16>[index] into !lacis.acc<64x64xf32>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @cut(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{tile_schedule: long panels are split in lists with a period}}
  %0 = lacis.balance #lacis.tile_schedule<columns = 16, swizzle_group = 1, split = 8, cost = #cost> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @levels(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{work lists have the format '(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)', with 'g : dense' before and 'singleton' levels behind, 6 in all}}
  %0 = lacis.balance #lacis.tile_schedule<columns = 16, swizzle_group = 1, period = 4, split = 8, cost = #cost> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

func.func @versions(%count: index) {
  // expected-error@+1 {{chooses between positive numbers that ascend}}
  %0 = lacis.version %count of [2, 8, 4]
  return
}
