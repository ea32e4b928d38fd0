// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps

// Steps that would make more code than anybody waits for, and strips that no axis fills.

// expected-error @+2 {{unroll: 1025 rounds of loop 'i' are more than 1024, the most that stand side by side; split it first, or take a smaller factor}}
// expected-note @+1 {{asked for}}
func.func @unroll(%n: index) attributes {lacis.steps = [#lacis.unroll<loop = "i", factor = 1025>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{unroll: 4096 rounds of loop 'i' are more than 1024}}
// expected-note @+1 {{asked for}}
func.func @unroll_all() attributes {lacis.steps = [#lacis.unroll<loop = "i">]} {
  %c4096 = arith.constant 4096 : index
  lacis.loop "i" %i to %c4096 {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{jam: 4096 rounds of loop 'i' are more than 1024, the most that stand side by side; split it first}}
// expected-note @+1 {{asked for}}
func.func @jam() attributes {lacis.steps = [#lacis.jam<loop = "i">]} {
  %c4096 = arith.constant 4096 : index
  lacis.loop "i" %i to %c4096 {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{vectorize: 4096 lanes of loop 'i' are more than 512, the most of one vector; split it first}}
// expected-note @+1 {{asked for}}
func.func @vectorize() attributes {lacis.steps = [#lacis.vectorize<loop = "i", width = 4096>]} {
  %c4096 = arith.constant 4096 : index
  lacis.loop "i" %i to %c4096 {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{pipeline: 1000000 stages of loop 'i' are more than 256, the most that are loaded ahead}}
// expected-note @+1 {{asked for}}
func.func @pipeline(%n: index) attributes {lacis.steps = [#lacis.pipeline<loop = "i", stages = 1000000>]} {
  %zero = arith.constant 0.0 : f32
  %s = lacis.loop "i" %i to %n iter(%acc = %zero) -> (f32) {
    %next = arith.addf %acc, %acc : f32
    lacis.yield %next : f32
  }
  return
}

// -----

// expected-error @+2 {{split: factor 1099511627776 of loop 'i' is more than 1073741824, the most coordinates of a strip; leave the loop whole}}
// expected-note @+1 {{asked for}}
func.func @split(%n: index) attributes {lacis.steps = [#lacis.split<loop = "i", factor = 1099511627776>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
