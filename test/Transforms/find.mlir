// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-levels | FileCheck %s

// A coordinate is found by a search where a level has an order, and by arithmetic where it has them all.
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// CHECK-LABEL: func @search
// CHECK:         scf.while
// CHECK:           scf.yield
// CHECK:         %[[INSIDE:.*]] = arith.cmpi slt
// CHECK:         %[[FOUND:.*]] = scf.if %[[INSIDE]] -> (i1) {
// CHECK:           arith.cmpi eq
// CHECK:         scf.if %[[FOUND]]
func.func @search(%w: tensor<?x?xf32, #csr> {lacis.axes = ["i", "j"], lacis.name = "0"},
                  %y: tensor<?xf32> {lacis.axes = ["i"], lacis.name = "out", lacis.output}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    %row, %is = lacis.find %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %at, %found = lacis.find %w[1] at %row(%i) : tensor<?x?xf32, #csr>
    %v = scf.if %found -> (f32) {
      %value = lacis.value %w at %at : tensor<?x?xf32, #csr> -> f32
      scf.yield %value : f32
    } else {
      %none = arith.constant 0.0 : f32
      scf.yield %none : f32
    }
    lacis.write %v to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#delta = #lacis.format<(i, j) -> (i : dense, j : var*delta<8>)>
func.func @walked(%w: tensor<?x?xf32, #delta> {lacis.axes = ["i", "j"], lacis.name = "0"},
                  %y: tensor<?xf32> {lacis.axes = ["i"], lacis.name = "out", lacis.output}) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lacis.find': level 1 of kind 'var*delta' has no way to find a coordinate}}
  %at, %found = lacis.find %w[1] at %c0(%c0) : tensor<?x?xf32, #delta>
  return
}
