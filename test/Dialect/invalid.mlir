// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What a format refuses about its axes and digits.

// expected-error @below {{axis 'j' is missing: add a level, for instance 'j : dense'}}
#a = #lacis.format<(i, j) -> (i : dense)>
// -----
// expected-error @below {{axis 'i' is used twice: 'i' and 'i' overlap}}
#a = #lacis.format<(i, j) -> (i : dense, i : dense, j : dense)>
// -----
// expected-error @below {{axis 'i' is used twice: 'i floordiv 8' and 'i mod 16' overlap}}
#a = #lacis.format<(i) -> (i floordiv 8 : dense, i mod 16 : dense)>
// -----
// expected-error @below {{the digits of axis 'i' leave a gap between 'i floordiv 32' and 'i mod 16': add a level over 'i floordiv 16 mod 2'}}
#a = #lacis.format<(i) -> (i floordiv 32 : dense, i mod 16 : dense)>
// -----
// expected-error @below {{the digits of axis 'i' end at 16: add a level over 'i floordiv 16'}}
#a = #lacis.format<(i) -> (i mod 16 : dense)>
// -----
// expected-error @below {{the digits of axis 'i' leave a gap below 'i floordiv 16': add a level over 'i mod 16'}}
#a = #lacis.format<(i) -> (i floordiv 16 : dense)>
// -----
// expected-error @below {{a block size must be positive, not 0}}
#a = #lacis.format<(i) -> (i floordiv 0 : dense, i mod 0 : dense)>
// -----
// expected-error @below {{a block size must be positive, not -4}}
#a = #lacis.format<(i) -> (i floordiv -4 : dense)>
// -----
// expected-error @below {{a block of 6 does not divide the block of 16 around it}}
#a = #lacis.format<(i) -> (i mod 16 floordiv 6 : dense)>
// -----
// expected-error @below {{a block of 1073741824 * 16 is too large: blocks end at 2147483647}}
#a = #lacis.format<(i) -> (i floordiv 1073741824 mod 16 : dense)>
// -----
// expected-error @below {{expected the name of an axis}}
#a = #lacis.format<(i, j) -> (3 : dense, j : dense)>
// -----
// expected-error @below {{block sizes multiply beyond 64 bits}}
#a = #lacis.format<(i) -> (i floordiv 4294967296 floordiv 4294967296 : dense)>
// -----
// expected-error @below {{no axis named 'k'; the names here are 'i', 'j'}}
#a = #lacis.format<(i, j) -> (i : dense, k : dense)>
// -----
// expected-error @below {{the name 'i' is given twice}}
#a = #lacis.format<(i, i) -> (i : dense)>
// -----
// expected-error @below {{a format needs at least one axis}}
#a = #lacis.format<() -> ()>
// -----
// expected-error @below {{a format needs at least one level}}
#a = #lacis.format<(i) -> ()>
// -----
// expected-error @below {{expected 'layout = ...' or 'multiset'}}
#a = #lacis.format<(i) -> (i : dense), unordered>
// -----
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @below {{the format has 2 axes, the tensor has rank 3}}
func.func private @rank(tensor<?x?x?xf32, #csr>)
// -----
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @below {{the format has 2 axes, the tensor has rank 1}}
func.func private @rank(!lacis.pattern<?, #csr>)
// -----
// expected-error @below {{a pattern needs a '#lacis.format' or '#lacis.sum', not 3}}
func.func private @rank(!lacis.pattern<?, 3>)
// -----
// expected-error @below {{the dialect 'lacis' has no attribute 'fromat'}}
#a = #lacis.fromat<(i) -> (i : dense)>

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @zeros(%p: !lacis.pattern<?x?, #csr>) {
  // expected-error @below {{the result has another shape or format than the pattern}}
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<4x?xf32, #csr>
  return
}

// -----

func.func @zeros_of_dense(%x: tensor<?xf32>) {
  // expected-error @below {{needs a pattern or a tensor with a format, not 'tensor<?xf32>'}}
  %z = lacis.zeros %x : tensor<?xf32> to tensor<?xf32>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @coordinate(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{level 1 has 1 digits, not 2}}
  %c:3 = lacis.coordinate %w[1] at %p from %p : tensor<?x?xf32, #csr> -> index, index
  return
}
