// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-form-tiles

// Marks of tiles and of work lists on nests that are no products.

// expected-error @+1 {{tiles: the nest is no product of tiles: it has not one loop over the positions of a level}}
func.func @dense(%y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c64 = arith.constant 64 : index
  lacis.loop "b" %b to %c64 {
    lacis.loop "i" %i to %c64 {
      lacis.yield
    } tensorize<rows>
    lacis.yield
  } balance<raster = 1, groups = 1>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+1 {{tiles: the nest is no product of tiles: it does not store one sum over a dense axis for each entry}}
func.func @sampled(%w: tensor<?x?xi1, #csr>, %dw: tensor<?x?xf32, #csr> {lacis.output, lacis.sample = 0 : i64}) {
  %c64 = arith.constant 64 : index
  lacis.loop "b" %b to %c64 {
    lacis.loop "i" %i to %c64 {
      lacis.yield
    } tensorize<rows>
    lacis.yield
  } balance<raster = 1, groups = 1>
  return
}
