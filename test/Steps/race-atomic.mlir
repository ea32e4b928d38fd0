// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// Rows that no share holds whole begin as what the sum begins with; then each part is added where it belongs.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[Y:[^:]*]]: tensor<?xf32> {lacis.name = "y"}
// CHECK-NOT:     lacis.workspace
// CHECK:         lacis.loop "i"<nest "i_j"> %[[I:.*]] to
// CHECK:           scf.if
// CHECK-NEXT:        lacis.write %cst to %[[Y]][%[[I]]]
// CHECK:         } begins bind<parallel>
// CHECK:         lacis.loop "i_j0"
// CHECK:           %[[SUM:.*]] = lacis.loop "j"
// CHECK:             lacis.write %[[SUM]] to %[[Y]][%[[ROW:.*]]] : f32
// CHECK:           } else {
// CHECK:             lacis.write %[[SUM]] to %[[Y]][%[[ROW]]] atomic<fadd>
// CHECK:         } bind<parallel> meets race<"atomic">
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.nondeterministic, lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>, #lacis.race<loop = "i_j0", strategy = "atomic">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{race: with 'atomic' the sum depends on which part arrives first, and only deterministic=False allows that; 'order', 'private' would do}}
// expected-note @+1 {{asked for}}
func.func @timing(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index)
    attributes {lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>, #lacis.race<loop = "i_j0", strategy = "atomic">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{race: 'atomic' adds to the output itself, so nothing can follow the sum (a bias, an activation, a rounding)}}
// expected-note @+1 {{asked for}}
func.func @rounded(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf16>, %n: index)
    attributes {lacis.nondeterministic, lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>, #lacis.race<loop = "i_j0", strategy = "atomic">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %h = arith.truncf %s : f32 to f16
    lacis.write %h to %y[%i] : f16 to tensor<?xf16>
    lacis.yield
  }
  return
}
