// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What operations take and give has the type that it can have.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @zeros(%n: index) {
  // expected-error @below {{operand #0 must be ranked tensor of any type values or The structure of a sparse tensor without its values., but got 'index'}}
  %0 = "lacis.zeros"(%n) : (index) -> tensor<?x?xf32, #csr>
  return
}

// -----

func.func @carried(%n: index, %x: tensor<?xf32>) {
  // expected-error @below {{must be variadic of a number, an index, a tile or a place in a ring, but got 'tensor<?xf32>'}}
  %0 = lacis.loop "i" %i to %n iter(%before = %x) -> (tensor<?xf32>) {
    lacis.yield %before : tensor<?xf32>
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @entry(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{must be a condition, or one a lane, but got 'f32'}}
  %0 = lacis.entry %w at %p : tensor<?x?xf32, #csr> -> f32
  return
}

// -----

func.func @lanes(%n: index) {
  // expected-error @below {{invalid kind of type specified: expected builtin.vector, but found 'i1'}}
  %0 = lacis.lanes %n : i1
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @value(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{must be a number, or a vector of numbers, but got 'index'}}
  %0 = lacis.value %w at %p : tensor<?x?xf32, #csr> -> index
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @set(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{must be a number, or a vector of numbers, but got 'index'}}
  lacis.set %p to %w at %p : index to tensor<?x?xf32, #csr>
  return
}
