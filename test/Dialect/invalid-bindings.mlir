// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What a format refuses about its bindings.

// expected-error @below {{binding 's' is not used by any level}}
#a = #lacis.format<(i, j) let s = slot(j in i) -> (i : dense, j : compressed)>
// -----
// expected-error @below {{axis 'i' is used twice: by a level and through 'r'}}
#a = #lacis.format<(i, j) let r = rank(i by nnz) -> (r : dense, i : dense, j : compressed)>
// -----
// expected-error @below {{axis 'i' is missing: add a level, for instance 'i : dense'}}
#a = #lacis.format<(i, j) let d = j - i -> (d : dense)>
// -----
// expected-error @below {{the name 'i' is taken: call the binding something else}}
#a = #lacis.format<(i, j) let i = j - i -> (i : dense)>
// -----
// expected-error @below {{expected '+' or '-'}}
#a = #lacis.format<(i, j) let d = j * i -> (i : dense)>
// -----
// expected-error @below {{a number of rows must be positive, not 0}}
#a = #lacis.format<(i, j) let r = rank(i by nnz within 0) -> (r : dense, j : compressed)>
// -----
// expected-error @below {{the digits of axis 'r' leave a gap below 'r floordiv 32': add a level over 'r mod 32'}}
#a = #lacis.format<(i, j) let r = rank(i by nnz) -> (r floordiv 32 : dense, j : compressed)>
// -----
// expected-error @below {{a binding is written inside '#lacis.format'}}
#a = #lacis.affine<d0 - d1>
// -----
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @f(%w: tensor<?x?xf32, #csr>, %r: index) -> index {
  // expected-error @below {{needs a tensor with a format whose binding 0 stores an array}}
  %i = lacis.lookup %w[0] at %r : tensor<?x?xf32, #csr>
  return %i : index
}
