// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-levels

// Tiles of tensors that have no stored blocks, or others.

#fours = #lacis.format<(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : compressed)>
func.func @presence(%w: tensor<?x?xi1, #fours> {lacis.axes = ["i", "j"]}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{presence: level kind 'compressed' does not know it; use 'bitmap'}}
  %bits = lacis.presence %w[2] at %c0 : tensor<?x?xi1, #fours>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @load(%w: tensor<?x?xbf16, #csr> {lacis.axes = ["i", "j"]}) {
  %i = arith.constant 0 : index
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  %t = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
  // expected-error @below {{load_tile: the format of the source does not end in a stored block of two dense levels}}
  lacis.load_tile %w[%i, %i, %i] to %t : tensor<?x?xbf16, #csr>[index, index, index] to !lacis.tile<64x64xbf16>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @store(%dw: tensor<?x?xbf16, #csr> {lacis.axes = ["i", "j"]}) {
  %i = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
  // expected-error @below {{store_tile: the target is dense, or sampled on a pattern that ends in a stored block}}
  lacis.store_tile %acc to %dw[%i, %i, %i] : !lacis.acc<64x64xf32> to tensor<?x?xbf16, #csr>[index, index, index]
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, i mod 32 : dense, j mod 32 : dense)>
func.func @blocks(%dw: tensor<?x?xbf16, #bsr> {lacis.axes = ["i", "j"]}) {
  %i = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
  // expected-error @below {{store_blocks: the groups of rows and the columns are those of a stored block of the target}}
  lacis.store_blocks %acc to %dw[%i, %i] : !lacis.acc<64x64xf32> to tensor<?x?xbf16, #bsr>[index, index]
  return
}
