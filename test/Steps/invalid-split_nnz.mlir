// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps

// What split_nnz refuses.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{split_nnz: factor 0 of loop 'j' must be positive}}
// expected-note @+1 {{asked for}}
func.func @factor(%w: tensor<?x?xf32, #csr>, %n: index) attributes {lacis.steps = [#lacis.split_nnz<loop = "j", factor = 0>]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    %s = lacis.level_loop "j" %w[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      lacis.yield %acc : f32
    }
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{split_nnz: loop 'j' carries no sum}}
// expected-note @+1 {{asked for}}
func.func @no_sum(%w: tensor<?x?xf32, #csr>, %n: index) attributes {lacis.steps = [#lacis.split_nnz<loop = "j", factor = 4>]} {
  lacis.loop "i" %i to %n {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{split_nnz: loop 'j' is marked already}}
// expected-note @+1 {{asked for}}
func.func @marked(%w: tensor<?x?xf32, #csr>, %n: index) attributes {lacis.steps = [#lacis.unroll<loop = "j", factor = 2>, #lacis.split_nnz<loop = "j", factor = 4>]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    %s = lacis.level_loop "j" %w[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      lacis.yield %acc : f32
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{split_nnz: loop 'k' does not walk the positions of one level}}
// expected-note @+1 {{asked for}}
func.func @coordinates(%n: index) attributes {lacis.steps = [#lacis.split_nnz<loop = "i_k", factor = 4>]} {
  lacis.loop "i" %i to %n {
    lacis.loop "k" %k to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}
