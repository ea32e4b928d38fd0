// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-choose-walks

// Formats without a walk, and orders that a step cannot have.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed), layout = 1>
#maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]
func.func @layout(%w: tensor<?x?xf32, #csr>, %init: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{formats with a 'layout' have no code yet: #lacis.format<(i, j) -> (i : dense, j : compressed), layout = 1}}
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<?x?xf32, #csr>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// The stored part ends in digits above those that are walked: no companion has them in order.
#inside = #lacis.format<(i, j) -> (i floordiv 16 : dense, i mod 4 : compressed, j : compressed, i floordiv 4 mod 4 : dense)>
#maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]
func.func @owner(%w: tensor<?x?xf32, #inside>, %init: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error-re @+1 {{no walk of '{{.*}}' gives each output element one owner}}
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<?x?xf32, #inside>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#inside = #lacis.format<(i, j) -> (i floordiv 16 : dense, i mod 4 : compressed, j : compressed, i floordiv 4 mod 4 : dense)>
#maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
func.func @entries(%w: tensor<?x?xf32, #inside>, %init: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // expected-error-re @+1 {{no walk of '{{.*}}' goes entry by entry}}
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<?x?xf32, #inside>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
// expected-error @+1 {{walk: the output has every letter of operand 'w', which is walked entry by entry}}
func.func @scattered(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %init: tensor<?x?xf32>) -> tensor<?x?xf32>
    attributes {lacis.steps = [#lacis.walk<operand = "w", axes = ["j"]>]} {
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #csr>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#sum = #lacis.sum<ell = #ell when fits, rest = #ell>
func.func @sum(%w: tensor<?x?xf32, #sum>) -> tensor<?x?xf32, #sum> {
  // expected-error @+1 {{a sum of formats is sampled part by part}}
  %zero = lacis.zeros %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #sum>
  return %zero : tensor<?x?xf32, #sum>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>]
// expected-error @+1 {{walk: the output has the entries of 'p', which are walked one by one; only entries in order under dense rows, as in CSR, are walked row by row, in the order of their format}}
func.func @sampled(%p: tensor<?x?xi1, #csr> {lacis.name = "p"}, %x: tensor<?xf32>) -> tensor<?x?xf32, #csr>
    attributes {lacis.steps = [#lacis.walk<operand = "p", axes = ["j"]>]} {
  %zero = lacis.zeros %p : tensor<?x?xi1, #csr> to tensor<?x?xf32, #csr>
  %sum = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%x : tensor<?xf32>) outs(%zero : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %acc: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #csr>
  return %sum : tensor<?x?xf32, #csr>
}
