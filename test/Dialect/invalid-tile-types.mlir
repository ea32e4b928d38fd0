// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What tiles, accumulators, rings and the structures derived from a pattern refuse.

// expected-error@+1 {{a ring has at least one stage, not 0}}
func.func private @stages(!lacis.ring<0, <64x64xbf16>>)

// -----

// expected-error@+1 {{a tile has rows and columns, a list of tiles a count before them; got 1 sizes}}
func.func private @rank(!lacis.tile<64xbf16>)

// -----

// expected-error@+1 {{the sizes of a tile are positive}}
func.func private @sizes(!lacis.tile<0x64xbf16>)

// -----

// expected-error@+1 {{elements of a tile are whole bytes, not 'i1'}}
func.func private @bits(!lacis.tile<64x64xi1>)

// -----

// expected-error@+1 {{an accumulator has rows and columns, at least one of each}}
func.func private @columns(!lacis.acc<64xf32>)

// -----

// expected-error@+1 {{an accumulator holds floating-point numbers, not 'i32'}}
func.func private @integers(!lacis.acc<64x64xi32>)

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @regroup(%w: tensor<?x?xbf16>) {
  // expected-error@+1 {{'lacis.regroup' op needs tensors with a '#lacis.format' encoding}}
  %0 = lacis.regroup #lacis.layout<format = #csr> of %w : tensor<?x?xbf16> to tensor<?x?xbf16>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @regrouped_type(%w: tensor<?x?xbf16, #csr>) {
  // expected-error@+1 {{shape and element type stay what they are, but for the axes of a batch, whose values share them}}
  %0 = lacis.regroup #lacis.layout<format = #csr> of %w : tensor<?x?xbf16, #csr> to tensor<?x?xf32, #csr>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @balance(%w: tensor<?x?xbf16, #csr>) {
  // expected-error@+1 {{'lacis.balance' op needs tensors with a '#lacis.format' encoding}}
  %0 = lacis.balance #lacis.segment_schedule<length = 8, cost = #cost> of %w : tensor<?x?xbf16, #csr> to tensor<?x?x?xi1>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @lists(%w: tensor<?x?xbf16, #bsr>, %n: index) {
  // expected-error@+1 {{work lists have the format '(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)'}}
  %0 = lacis.balance #lacis.tile_schedule<columns = 256, swizzle_group = 4, cost = #cost> of %w over %n : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#lists = #lacis.format<(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)>
func.func @over_and_groups(%w: tensor<?x?xbf16, #csr>, %n: index) {
  // expected-error@+1 {{lists are 'over' an extent where a '#lacis.tile_schedule' has no period, and only there}}
  %0 = lacis.balance #lacis.tile_schedule<columns = 8, swizzle_group = 1, period = 2, cost = #cost> of %w over %n : tensor<?x?xbf16, #csr> to tensor<?x?x?xi1, #lists>
  return
}

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#lists = #lacis.format<(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)>
func.func @groups(%w: tensor<?x?xbf16, #csr>) {
  // expected-error@+1 {{b : singleton)', with 'g : dense' before}}
  %0 = lacis.balance #lacis.tile_schedule<columns = 8, swizzle_group = 1, period = 2, cost = #cost> of %w : tensor<?x?xbf16, #csr> to tensor<?x?x?xi1, #lists>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @origin(%w: tensor<?x?xbf16, #bsr>, %n: index) {
  // expected-error@+1 {{needs the result of 'lacis.regroup'}}
  %0 = lacis.origin %w at %n : tensor<?x?xbf16, #bsr>
  return
}
