// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-levels

// Nests that have no buffers.

// expected-error @below {{a module holds one kernel, not 2}}
module {
  func.func @first() {
    return
  }
  func.func @second() {
    return
  }
}

// -----

// expected-error @below {{a kernel takes tensors, the last of them its output}}
func.func @number(%x: tensor<?xf32>, %n: index) {
  return
}

// -----

func.func @foreign(%y: tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error @below {{'scf.for' has no place inside a nest}}
  scf.for %j = %c0 to %c8 step %c8 {
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @unknown_size(%w: tensor<?x?xf32, #csr> {lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.axes = ["i"]}) {
  %c0 = arith.constant 0 : index
  %lo, %hi = lacis.bounds %w[1] at %c0 : tensor<?x?xf32, #csr>
  // expected-error @below {{bind: the size of loop 'i' is not known before the launch}}
  lacis.loop "i" %i to %hi {
    lacis.yield
  } bind<parallel>
  return
}

// -----

#panels = #lacis.format<(b) -> (b floordiv 4 : dense, b mod 4 : dense)>
func.func @uneven_read(%y: tensor<?xf32> {lacis.axes = ["b"]}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %x = lacis.workspace(%n) : tensor<?xf32, #panels>
  // expected-error @below {{vectorize: 8 elements along axis 0 are not evenly spaced in the layout of the operand}}
  %e = lacis.read %x[%c0] along 0 : tensor<?xf32, #panels> -> vector<8xf32>
  return
}

// -----

#panels = #lacis.format<(b) -> (b floordiv 4 : dense, b mod 4 : dense)>
func.func @uneven_write(%y: tensor<?xf32> {lacis.axes = ["b"]}) {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<0.0> : vector<8xf32>
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %x = lacis.workspace(%n) : tensor<?xf32, #panels>
  // expected-error @below {{vectorize: 8 elements along axis 0 are not evenly spaced in the layout of the operand}}
  lacis.write %v to %x[%c0] along 0 : vector<8xf32> to tensor<?xf32, #panels>
  return
}

// -----

#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
func.func @one_round(%w: tensor<?x?xf32, #coo> {lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.axes = ["i"]}) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.level_loop "i" %w[0] at %c0 (%p, %i) : tensor<?x?xf32, #coo> {
    // expected-error @below {{pipeline: loop 'j' has one round, which has none to load ahead}}
    %s = lacis.level_loop "j" %w[1] at %p (%q, %j) iter(%a = %zero) -> (f32) : tensor<?x?xf32, #coo> {
      lacis.yield %a : f32
    } pipeline<2>
    lacis.yield
  }
  return
}

// -----

#panels = #lacis.format<(b, j) -> (b floordiv 4 : dense, j : dense, b mod 4 : dense)>
func.func @uneven_tile(%y: tensor<?x?xf32> {lacis.axes = ["b", "j"]}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x?xf32>
  %x = lacis.workspace(%n, %n) : tensor<?x?xf32, #panels>
  // expected-error @below {{vectorize: 8 elements along axis 0 are not evenly spaced in the layout of the operand}}
  lacis.copy_transposed 8 of %y[%c0, %c0] rows 0 along 1 to %x[%c0, %c0] rows 1 along 0
    : tensor<?x?xf32> to tensor<?x?xf32, #panels>
  return
}
