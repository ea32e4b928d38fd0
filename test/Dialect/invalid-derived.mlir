// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What attributes of derived arrays refuse.

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @format(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{the result has the format of the layout, #lacis.format<(i, j) -> (i floordiv 64 : dense}}
  %0 = lacis.regroup #lacis.layout<format = #bsr> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xbf16, #lacis.format<(i, j) -> (i : dense, j : compressed)>>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error@+1 {{layout: lines of 32, 64 or 128 bytes are exchanged, or 0 for none, not 16}}
#layout = #lacis.layout<format = #csr, swizzle = 16>

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error@+1 {{layout: a capacity is at least 1}}
#layout = #lacis.layout<format = #csr, capacity = 0>

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error@+1 {{index: rows with at least 0 entries; from 1 on}}
#index = #lacis.index<format = #csr, least = 0>

// -----

// expected-error@+1 {{cost: bytes, products, clock and kept are at least 1}}
#cost = #lacis.cost<bytes = 0, products = 1, clock = 1, panel = 0, start = 0, part = 0, move = 0, segment = 0, kept = 1>

// -----

// expected-error@+1 {{cost: no time is below 0}}
#cost = #lacis.cost<bytes = 1, products = 1, clock = 1, panel = -1, start = 0, part = 0, move = 0, segment = 0, kept = 1>

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
// expected-error@+1 {{tile_schedule: columns, swizzle_group, period and split are at least 1}}
#tiles = #lacis.tile_schedule<columns = 256, swizzle_group = 0, period = 16, cost = #cost>

// -----

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
// expected-error@+1 {{segment_schedule: length and span are at least 1}}
#segments = #lacis.segment_schedule<length = 0, cost = #cost>

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @no_schedule(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{work lists follow from a schedule, not from #lacis.layout<}}
  %0 = lacis.balance #lacis.layout<format = #bsr> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}
