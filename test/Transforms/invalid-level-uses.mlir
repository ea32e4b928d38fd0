// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-levels

// What is asked of levels and tensors that they cannot answer.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @locate(%w: tensor<?x?xf32, #csr> {lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lacis.locate': level 1 of kind 'compressed' has no position for each coordinate, and is no link}}
  %p = lacis.locate %w[1] at %c0(%c0) : tensor<?x?xf32, #csr>
  return
}

// -----

#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
func.func @value(%w: tensor<?x?xf32, #coo> {lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lacis.value' needs a tensor that has such elements and axes, one at a time or side by side in one vector}}
  %v = lacis.value %w at %c0 : tensor<?x?xf32, #coo> -> f64
  return
}

// -----

func.func @lanes(%y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lacis.lanes' needs a tensor that has such elements}}
  %v = lacis.lanes %c0 : vector<[4]xi1>
  return
}

// -----

func.func @dim(%n: tensor<?xf32> {lacis.axes = ["i"]}, %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n1 = tensor.dim %n, %c0 : tensor<?xf32>
  // expected-error @below {{'tensor.dim' needs a tensor that has such elements and axes}}
  %n2 = tensor.dim %n, %n1 : tensor<?xf32>
  return
}

// -----

func.func @made(%y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  %z = tensor.empty(%c0) : tensor<?xf32>
  // expected-error @below {{'lacis.read': a tensor is an argument of the kernel, or part, walk or layout of one, or a workspace}}
  %v = lacis.read %z[%c0] : tensor<?xf32> -> f32
  return
}

// -----

#coo = #lacis.format<(i, j) -> (i : compressed<unique=false, ordered=false>, j : singleton)>
func.func @seek(%w: tensor<?x?xf32, #coo> {lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lacis.seek': level 0 of kind 'compressed' has no order of coordinates to seek in}}
  %p = lacis.seek %w[0] from %c0 to %c0 of %c0 : tensor<?x?xf32, #coo>
  return
}

// -----

#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
func.func @owner(%w: tensor<?x?xf32, #coo> {lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lacis.owner': level 1 of kind 'singleton' does not tell the parent of a position}}
  %p = lacis.owner %w[1] of %c0 in %c0 : tensor<?x?xf32, #coo>
  return
}

// -----

#bits = #lacis.format<(i, j) -> (i : dense, j : bitmap)>
func.func @positions(%w: tensor<?x?xf32, #bits> {lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  // expected-error @below {{has no array with an element for each position}}
  %n = lacis.positions %w[1] : tensor<?x?xf32, #bits>
  return
}

// -----

#steps = #lacis.format<(i, j) -> (i : dense, j : var*delta<8>)>
func.func @coordinate(%w: tensor<?x?xf32, #steps> {lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{knows a coordinate by those before it: walk it in order}}
  %j, %valid = lacis.coordinate %w[1] at %c0 from %c0 : tensor<?x?xf32, #steps> -> index
  return
}

// -----

#heads = #lacis.format<(h, i) -> (h : batch, i : compressed)>
func.func @copy(%w: tensor<?x?xf32, #heads> {lacis.axes = ["h", "i"]}, %y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lacis.value' says which copy of the values it means, by 'batch', where levels of kind 'batch' make several, and nowhere else}}
  %v = lacis.value %w at %c0 : tensor<?x?xf32, #heads> -> f32
  return
}
