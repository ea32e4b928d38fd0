// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps

// Positions whose coordinates are in no order have no strips.
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed<ordered=false>)>
// expected-error @+2 {{split: loop 'j' walks positions whose coordinates are not stored in order, so no strip is found by seek; split_nnz cuts it by positions}}
// expected-note @+1 {{asked for}}
func.func @rows(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.split<loop = "j", factor = 64>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#pairs = #lacis.format<(i, j) -> ((i, j) : compressed)>
// expected-error @+2 {{split: loop 'i_j' walks the positions of a level of several axes, which has no strips of one}}
// expected-note @+1 {{asked for}}
func.func @pairs(%w: tensor<?x?xf32, #pairs>, %y: tensor<?xf32>, %n: index)
    attributes {lacis.steps = [#lacis.split<loop = "i_j", factor = 64>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "k" %k to %n {
    %s = lacis.level_loop "i_j" %w[0] at %c0 (%p, %i, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #pairs> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #pairs> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%k] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
