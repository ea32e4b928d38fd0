// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-linalg-to-loops

// Expressions that are no nest.

#map = affine_map<(i) -> (i)>
func.func @names(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'lacis.loops' names a loop 'i1'; names are letters}}
  %y = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"], lacis.loops = ["i1"]} outs(%x : tensor<?xf32>) {
  ^bb0(%a: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>]
func.func @window(%x: tensor<8xf32>, %w: tensor<3xf32>, %init: tensor<6xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{indexing map affine_map<(d0, d1) -> (d0 + d1)> is not a list of loops}}
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<8xf32>, tensor<3xf32>) outs(%init : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    linalg.yield %a : f32
  } -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// -----

#map = affine_map<(i) -> (i)>
func.func @output_size(%n: index, %zero: f32) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  // expected-error @+1 {{no operand tells the size of loop 'a'}}
  %y = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#maps = [affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>]
func.func @inner_size(%x: tensor<?xf32>, %n: index, %zero: f32, %init: tensor<?xf32>) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %ones = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  // expected-error @+1 {{no operand tells the size of loop 'b'}}
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "reduction"]}
      ins(%x, %ones : tensor<?xf32>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %s = arith.addf %acc, %b : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>]
func.func @number(%x: tensor<?xf32>, %init: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{a kernel whose output has no axis has no unit to run on}}
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["reduction"]}
      ins(%x : tensor<?xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#map = affine_map<(i, j) -> (i, j)>
func.func @sampled(%x: tensor<?x?xf32>, %w: tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr> {
  // expected-error @+1 {{an output with a format begins as 'lacis.zeros' of its pattern}}
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x?xf32>) outs(%w : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #csr>
  return %y : tensor<?x?xf32, #csr>
}

// -----

#map = affine_map<(i) -> (i)>
func.func @unfused(%x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'tensor.cast' cannot be fused: operands are arguments, or made by 'linalg.generic' or 'linalg.fill'}}
  %c = tensor.cast %x : tensor<?xf32> to tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
      ins(%c : tensor<8xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#map = affine_map<(i, j) -> (i, j)>
func.func @two_patterns(%w: tensor<?x?xf32, #csr>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  // expected-error @+1 {{an output with every letter of a sum of formats is made part by part}}
  %y = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%w, %w : tensor<?x?xf32, #csr>, tensor<?x?xf32, #csr>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
