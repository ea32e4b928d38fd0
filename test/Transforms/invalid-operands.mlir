// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-sums -lacis-choose-walks -lacis-linalg-to-loops

// Operands with formats that a nest has no place for.

#rows = #lacis.format<(i) -> (i : dense)>
#map = affine_map<(i) -> (i)>
// expected-error @+1 {{one operand with a format is added up, or has the output's pattern; others are dense}}
func.func @copied(%w: tensor<?xf32, #rows>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%w : tensor<?xf32, #rows>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Sums of formats: the second has no part that is walked.
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#sum = #lacis.sum<ell = #ell when fits, rest = #ell>
#maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]
// expected-error @+1 {{one operand with a format is added up, or has the output's pattern; others are dense}}
func.func @two_sums(%v: tensor<?x?xf32, #sum>, %w: tensor<?x?xf32, #sum>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "reduction"]}
      ins(%v, %w : tensor<?x?xf32, #sum>, tensor<?x?xf32, #sum>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %m : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>]
func.func @unsummed(%x: tensor<?x?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{operand 0 has a letter that the output lacks, and nothing sums over it}}
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
