// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-resolve-kinds

// Operations that define no binding, formats that have another one in mind, and what no binding solves.

// expected-error @below {{takes one index, and ends with 'lacis.answer' of an index for each axis}}
lacis.binding @bit inverse(%z) {
  %i = arith.constant true
  lacis.answer %i : i1
}
// -----
// expected-error @below {{has as many coordinates as axis 1, of 1}}
lacis.binding @same same 1 inverse(%z) {
  lacis.answer %z : index
}
// -----
lacis.binding @field inverse(%z) {
  // expected-error @below {{'lacis.level_size' has no place in a binding: it is integer arithmetic and 'scf' loops}}
  %i = lacis.level_size
  lacis.answer %i : index
}
// -----
#z = #lacis.format<(i, j) let z = @one(i, j) -> (z : compressed)>
lacis.binding @one inverse(%z) {
  lacis.answer %z : index
}
// expected-error @below {{binding '@one' computes 1 axes; the format has it of 2}}
func.func @f(%w: tensor<?x?xf32, #z>) {
  return
}
// -----
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @f(%w: tensor<?x?xf32, #csr>, %z: index) -> index {
  // expected-error @below {{needs a tensor with a format that has a binding 0}}
  %i = lacis.solve %w[0] of 0 at %z : tensor<?x?xf32, #csr>
  return %i : index
}
// -----
#dia = #lacis.format<(i, j) let d = j - i -> (d : compressed, j : range)>
func.func @f(%w: tensor<?x?xf32, #dia>, %d: index) -> index {
  // expected-error @below {{binding 0 is no user's own of axis 0}}
  %i = lacis.solve %w[0] of 0 at %d : tensor<?x?xf32, #dia>
  return %i : index
}
