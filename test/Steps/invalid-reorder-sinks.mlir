// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{reorder: what loop 'j' runs over depends on loop 'i'}}
// expected-note @+1 {{asked for}}
func.func @rows(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index, %zero: f32)
    attributes {lacis.steps = [#lacis.reorder<loops = ["j", "i"]>]} {
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %a = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %a (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      lacis.yield %v : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{reorder: loop 'k' has more in it than the sum of loop 'j' and what follows that}}
// expected-note @+1 {{asked for}}
func.func @written(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %i: index, %m: index, %zero: f32)
    attributes {lacis.steps = [#lacis.reorder<loops = ["j", "k"]>]} {
  lacis.loop "k" %k to %m {
    lacis.write %zero to %y[%k] : f32 to tensor<?xf32>
    %s = lacis.level_loop "j" %w[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      lacis.yield %v : f32
    }
    lacis.write %s to %y[%k] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{reorder: more than one loop changes places with loop 'j', which walks positions; a step moves one}}
// expected-note @+1 {{asked for}}
func.func @both(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %i: index, %m: index, %zero: f32)
    attributes {lacis.steps = [#lacis.split<loop = "k", factor = 8>, #lacis.reorder<loops = ["j", "k0", "k1"]>]} {
  lacis.loop "k" %k to %m {
    %s = lacis.level_loop "j" %w[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      lacis.yield %v : f32
    }
    lacis.write %s to %y[%k] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{reorder: loops 'j' and 'k' do not carry one sum, the one inside the other; walk says by which axes an operand is walked}}
// expected-note @+1 {{asked for}}
func.func @no_sum(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index, %m: index, %zero: f32)
    attributes {lacis.steps = [#lacis.reorder<loops = ["k", "j"]>]} {
  lacis.loop "i" %i to %n {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.loop "k" %k to %m {
        lacis.write %zero to %y[%k] : f32 to tensor<?xf32>
        lacis.yield
      }
      lacis.yield
    }
    lacis.yield
  }
  return
}
