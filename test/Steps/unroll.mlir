// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A factor is given, or the loop's own count is taken; a level that is packed has one.
// CHECK-LABEL: func.func @rounds(
// CHECK:         lacis.level_loop "j"
// CHECK:         unroll<4>
// CHECK:         lacis.level_loop "k"
// CHECK:         unroll<2>
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#csr = #lacis.format<(i, k) -> (i : dense, k : compressed)>
func.func @rounds(%w: tensor<?x?xf32, #ell>, %v: tensor<?x?xf32, #csr>, %n: index)
    attributes {lacis.steps = [#lacis.unroll<loop = "j">, #lacis.unroll<loop = "k", factor = 2>]} {
  lacis.loop "i" %i to %n {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #ell> {
      lacis.yield
    }
    lacis.level_loop "k" %v[1] at %i (%p, %k) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// A sum of products may have several sums, which the rounds that run at once add to.
// CHECK-LABEL: func.func @sums(
// CHECK:         lacis.level_loop "j"
// CHECK:         sums<2> unroll<4>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @sums(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index)
    attributes {lacis.steps = [#lacis.unroll<loop = "j", factor = 4, sums = 2>]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    %sum = lacis.level_loop "j" %w[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %sum to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{unroll: loop 'i' has no 2 sums: it carries no sum that one operation adds up}}
// expected-note @+1 {{asked for}}
func.func @no_sum(%n: index) attributes {lacis.steps = [#lacis.unroll<loop = "i", factor = 2, sums = 2>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{unroll: loop 'i' has no 3 sums: 3 sums do not share the rounds of a factor}}
// expected-note @+1 {{asked for}}
func.func @no_share(%n: index) attributes {lacis.steps = [#lacis.unroll<loop = "i", factor = 4, sums = 3>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{unroll: no loop named 'k'}}
// expected-note @+1 {{asked for #lacis.unroll<loop = "k", factor = 4>; loops here are 'i'}}
func.func @no_name(%n: index) attributes {lacis.steps = [#lacis.unroll<loop = "k", factor = 4>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{unroll: how often loop 'i' runs is not known; give a factor}}
// expected-note @+1 {{asked for #lacis.unroll<loop = "i">; loops here are 'i'}}
func.func @no_trip(%n: index) attributes {lacis.steps = [#lacis.unroll<loop = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{unroll: factor 0 of loop 'i' must be positive}}
// expected-note @+1 {{asked for}}
func.func @no_factor(%n: index) attributes {lacis.steps = [#lacis.unroll<loop = "i", factor = 0>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{unroll: loop 'i' is marked already, and stays no loop}}
// expected-note @+1 {{asked for}}
func.func @marked(%n: index) attributes {lacis.steps = [#lacis.parallel<loop = "i">, #lacis.unroll<loop = "i", factor = 4>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
