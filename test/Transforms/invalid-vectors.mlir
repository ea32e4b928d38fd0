// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-vectorize-loops -lacis-unroll-and-jam

// Loops whose lanes are no vector, and rows that do not share the loops inside.

func.func @index(%y: tensor<?xi32>, %n: index) {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{vectorize: 'arith.muli' on the lanes of loop 'b' has no vector form}}
  lacis.loop "b" %b to %c4 {
    %square = arith.muli %b, %b : index
    %v = arith.index_cast %square : index to i32
    lacis.write %v to %y[%b] : i32 to tensor<?xi32>
    lacis.yield
  } vectorize<4>
  return
}

// -----

func.func @diagonal(%x: tensor<?x?xf32>, %y: tensor<?xf32>) {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{vectorize: loop 'b' is not consecutive in an access}}
  lacis.loop "b" %b to %c4 {
    %v = lacis.read %x[%b, %b] : tensor<?x?xf32> -> f32
    lacis.write %v to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  } vectorize<4>
  return
}

// -----

func.func @one_element(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index) {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{vectorize: all lanes of loop 'b' write one element}}
  lacis.loop "b" %b to %c4 {
    %v = lacis.read %x[%b] : tensor<?xf32> -> f32
    lacis.write %v to %y[%n] : f32 to tensor<?xf32>
    lacis.yield
  } vectorize<4>
  return
}

// -----

#rows = #lacis.format<(i, j) -> (i : dense, j : dense)>
func.func @rows(%w: tensor<?x?xf32, #rows>, %y: tensor<?xf32>, %n: index) {
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{vectorize: loop 'i' does not run along neighbours of a stored block}}
  lacis.loop "i" %i to %c4 {
    %p = lacis.locate %w[1] at %i (%n) : tensor<?x?xf32, #rows>
    %v = lacis.value %w at %p : tensor<?x?xf32, #rows> -> f32
    lacis.write %v to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  } vectorize<4>
  return
}

// -----

func.func @bounds(%n: index) {
  %c2 = arith.constant 2 : index
  // expected-error @+1 {{jam: the bounds of a loop inside depend on 'i'}}
  lacis.loop "i" %i to %c2 {
    lacis.loop "j" %j to %i {
      lacis.yield
    }
    lacis.yield
  } jam<2>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @positions(%w: tensor<?x?xf32, #csr>) {
  %c2 = arith.constant 2 : index
  // expected-error @+1 {{jam: the positions of a level inside depend on 'i'}}
  lacis.loop "i" %i to %c2 {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  } jam<2>
  return
}

// -----

func.func @guarded_value(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index, %zero: f32) {
  %c2 = arith.constant 2 : index
  // expected-error @+1 {{jam: a guarded value of loop 'i' cannot be shared}}
  lacis.loop "i" %i to %c2 {
    %inside = arith.cmpi slt, %i, %n : index
    %v = scf.if %inside -> (f32) {
      %e = lacis.read %x[%i] : tensor<?xf32> -> f32
      scf.yield %e : f32
    } else {
      scf.yield %zero : f32
    }
    lacis.write %v to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  } jam<2>
  return
}
