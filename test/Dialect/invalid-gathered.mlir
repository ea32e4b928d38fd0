// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What shares within some columns, and products of gathered parts, refuse.

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @within(%w: tensor<?x?xbf16, #bsr>, %n: index) {
  // expected-error@+1 {{shares of positions are 'within' so many elements, at least 1; other lists are not}}
  %0 = lacis.balance %w over %n by 256 within 640 : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @counts(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{work lists have the format '(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)' and 'singleton' levels behind, 2 in all}}
  %0 = lacis.balance %w by 16 within 640 : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @parts(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{shares of positions have 'parts', at least 2; others have none}}
  %0 = lacis.balance %w by 16 groups 4 parts 4 : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @part_lists(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{b : singleton)', with 'g : dense' before and 'singleton' levels behind, 4 in all}}
  %0 = lacis.balance %w by 8 parts 4 : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
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

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @cut(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{lists of 'groups' are 'cut', up to at least 1 tile; others are not}}
  %0 = lacis.balance %w by 16 cut 8 : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @levels(%w: tensor<?x?xbf16, #bsr>) {
  // expected-error@+1 {{work lists have the format '(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)', with 'g : dense' before and 'singleton' levels behind, 6 in all}}
  %0 = lacis.balance %w by 16 groups 4 cut 8 : tensor<?x?xbf16, #bsr> to tensor<?x?xi1, #bsr>
  return
}
