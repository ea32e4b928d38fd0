// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What loops refuse.

func.func @carried_types(%n: index, %x: f32) {
  // expected-error @below {{expected one type for each carried value}}
  %0 = lacis.loop "i" %i to %n iter(%a = %x) -> (f32, f32) {
    lacis.yield %a : f32
  }
  return
}

// -----

func.func @unfinished(%n: index) {
  // expected-error @below {{body must end with 'lacis.yield'}}
  lacis.loop "i" %i to %n {
    %0 = arith.constant 0 : index
  }
  return
}

// -----

func.func @arguments(%n: index) {
  // expected-error @below {{body needs 1 arguments before the carried values}}
  "lacis.loop"(%n) <{letters = "i"}> ({
    lacis.yield
  }) : (index) -> ()
  return
}

// -----

func.func @yielded(%n: index, %x: f32) {
  // expected-error @below {{initial, carried, yielded and result types must agree}}
  %0 = lacis.loop "i" %i to %n iter(%a = %x) -> (f32) {
    lacis.yield
  }
  return
}

// -----

func.func @vectorize(%n: index) {
  // expected-error @below {{vectorize: loop 'i' must run exactly 8 times}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } vectorize<8>
  return
}

// -----

func.func @jam(%n: index) {
  // expected-error @below {{jam: loop 'i' must run exactly 4 times}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } jam<4>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @level(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{expected a tensor with a format that has level 2}}
  lacis.level_loop "i" %w[2] at %p (%q, %i) : tensor<?x?xf32, #csr> {
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @digits(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{body needs 2 arguments before the carried values}}
  lacis.level_loop "i" %w[0] at %p (%q) : tensor<?x?xf32, #csr> {
    lacis.yield
  }
  return
}
