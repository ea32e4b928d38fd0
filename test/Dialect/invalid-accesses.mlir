// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What parts, walks, positions and accesses refuse.

func.func @not_a_sum(%w: tensor<?x?xf32>) {
  // expected-error @below {{source must have a '#lacis.sum' encoding}}
  %0 = lacis.part "ell" of %w : tensor<?x?xf32> to tensor<?x?xf32>
  return
}

// -----

#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<ell = #ell when fits, rest = #csr>
func.func @format_of_part(%w: tensor<?x?xf32, #sum>) {
  // expected-error @below {{part 'ell' has format #lacis.format<(i, j) -> (i : dense, j : packed<4>)>}}
  %0 = lacis.part "ell" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<rest = #csr>
func.func @name_of_part(%w: tensor<?x?xf32, #sum>) {
  // expected-error @below {{no part named 'ell'; the parts here are 'rest'}}
  %0 = lacis.part "ell" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  return
}

// -----

func.func @walk(%w: tensor<?x?xf32>) {
  // expected-error @below {{'lacis.walk' op needs tensors with a '#lacis.format' encoding}}
  %0 = lacis.walk %w : tensor<?x?xf32> to tensor<?x?xf32>
  return
}

// -----

func.func @workspace(%n: index) {
  // expected-error @below {{needs one size for each axis}}
  %0 = lacis.workspace(%n) : tensor<?x?xf32>
  return
}

// -----

func.func @positions(%x: tensor<?xf32>) {
  // expected-error @below {{needs a tensor with a '#lacis.format' encoding}}
  %0 = lacis.positions %x[0] : tensor<?xf32>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @bounds(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{level 2 does not exist: the format has 2}}
  %lo, %hi = lacis.bounds %w[2] at %p : tensor<?x?xf32, #csr>
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @locate(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{level 0 has 1 digits, not 2}}
  %0 = lacis.locate %w[0] at %p (%p, %p) : tensor<?x?xf32, #csr>
  return
}

// -----

func.func @indices(%x: tensor<?x?xf32>, %i: index) {
  // expected-error @below {{needs one index for each of the 2 axes}}
  %0 = lacis.read %x[%i] : tensor<?x?xf32> -> f32
  return
}

// -----

func.func @scalar_along(%x: tensor<?x?xf32>, %i: index) {
  // expected-error @below {{a vector access names its axis with 'along', a scalar one does not}}
  %0 = lacis.read %x[%i, %i] along 1 : tensor<?x?xf32> -> f32
  return
}

// -----

func.func @along(%x: tensor<?x?xf32>, %i: index) {
  // expected-error @below {{axis 2 does not exist: the tensor has 2}}
  %0 = lacis.read %x[%i, %i] along 2 : tensor<?x?xf32> -> vector<8xf32>
  return
}

// -----

func.func @elements(%x: tensor<?x?xf32>, %v: f16, %i: index) {
  // expected-error @below {{element types must agree: 'f16' and 'f32'}}
  lacis.write %v to %x[%i, %i] : f16 to tensor<?x?xf32>
  return
}

// -----

#panels = #lacis.format<(b, i) -> (b floordiv 4 : dense, i : dense, b mod 4 : dense)>
func.func @tile_of_many_threads(%n: index, %y: tensor<?x?xf32>) {
  lacis.loop "i0" %i to %n {
    // expected-error @below {{bind: loop 'i1' inside runs on 'parallel', but the tile belongs to one thread; bind a loop around it}}
    %tile = lacis.workspace(%n, %n) place<private> : tensor<?x?xf32, #panels>
    lacis.loop "i1" %j to %n {
      lacis.yield
    } bind<parallel>
    lacis.yield
  }
  return
}
