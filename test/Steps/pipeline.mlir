// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// CHECK-LABEL: func.func @ahead(
// CHECK:         lacis.level_loop "j"
// CHECK:         } pipeline<4>
func.func @ahead(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index)
    attributes {lacis.steps = [#lacis.pipeline<loop = "j", stages = 4>]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    %s = lacis.level_loop "j" %w[1] at %i (%p, %j) iter(%a = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %t = arith.addf %a, %v : f32
      lacis.yield %t : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{pipeline: no loop named 'k'}}
// expected-note @+1 {{asked for}}
func.func @unknown(%n: index) attributes {lacis.steps = [#lacis.pipeline<loop = "k", stages = 4>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{pipeline: loop 'i' carries no sum; what a sum adds up is loaded ahead}}
// expected-note @+1 {{asked for}}
func.func @no_sum(%n: index) attributes {lacis.steps = [#lacis.pipeline<loop = "i", stages = 4>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{pipeline: 1 stages leave nothing to load ahead; take 2 or more}}
// expected-note @+1 {{asked for}}
func.func @stages(%n: index) attributes {lacis.steps = [#lacis.pipeline<loop = "j", stages = 1>]} {
  %zero = arith.constant 0.0 : f32
  %s = lacis.loop "j" %j to %n iter(%acc = %zero) -> (f32) {
    lacis.yield %acc : f32
  }
  return
}

// -----

// expected-error @+2 {{pipeline: loop 'j' is bound, vectorized or jammed: its rounds run at once}}
// expected-note @+1 {{asked for}}
func.func @bound(%n: index) attributes {lacis.steps = [#lacis.bind<loop = "j", unit = "lane">, #lacis.pipeline<loop = "j", stages = 2>]} {
  %zero = arith.constant 0.0 : f32
  %c32 = arith.constant 32 : index
  %s = lacis.loop "j" %j to %c32 iter(%acc = %zero) -> (f32) {
    %next = arith.addf %acc, %acc : f32
    lacis.yield %next : f32
  }
  return
}

// -----

// expected-error @+2 {{vectorize: loop 'j' is marked already}}
// expected-note @+1 {{asked for}}
func.func @then_bound(%n: index) attributes {lacis.steps = [#lacis.pipeline<loop = "j", stages = 2>, #lacis.vectorize<loop = "j", width = 32>]} {
  %zero = arith.constant 0.0 : f32
  %c32 = arith.constant 32 : index
  %s = lacis.loop "j" %j to %c32 iter(%acc = %zero) -> (f32) {
    %next = arith.addf %acc, %acc : f32
    lacis.yield %next : f32
  }
  return
}
