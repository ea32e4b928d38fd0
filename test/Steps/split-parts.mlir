// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A fixed number of units takes the positions of each row, in equal parts; each keeps its sum in a copy of the output.
// CHECK-LABEL: func.func @private(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, {{.*}}>, %[[Y:[^:]*]]: tensor<?xf32>
// CHECK:         %[[COPIES:.*]] = lacis.workspace(%{{.*}}, %{{.*}}) : tensor<?x?xf32
// CHECK:         lacis.loop "i" %[[I:.*]] to
// CHECK:           lacis.loop "j0" %[[UNIT:.*]] to %{{[^ ]*}} {
// CHECK:             %[[LO:.*]], %[[HI:.*]] = lacis.bounds %[[W]][1]
// CHECK:             %[[COUNT:.*]] = arith.subi %[[HI]], %[[LO]]
// CHECK:             %[[SIZE:.*]] = arith.ceildivui %[[COUNT]], %c8
// CHECK:             %[[SKIPPED:.*]] = arith.muli %[[UNIT]], %[[SIZE]]
// CHECK:             %[[BEGIN:.*]] = arith.addi %[[LO]], %[[SKIPPED]]
// CHECK:             %[[FROM:.*]] = arith.minsi %[[BEGIN]], %[[HI]]
// CHECK:             %[[OWN:.*]] = lacis.loop "j1"
// CHECK:             lacis.write %[[OWN]] to %[[COPIES]][%[[UNIT]], %[[I]]]
// CHECK:           } bind<parallel> meets race<"private">
// CHECK:         lacis.loop "i"<nest "j0"> %[[I2:.*]] to
// CHECK:           %[[SUM:.*]] = lacis.loop "j0"<nest "j0"> %[[NEXT:.*]] to
// CHECK:             lacis.read %[[COPIES]][%[[NEXT]], %[[I2]]]
// CHECK:           lacis.write %[[SUM]] to %[[Y]][%[[I2]]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @private(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>)
    attributes {lacis.steps = [#lacis.split_nnz<loop = "j", parts = 8>, #lacis.race<loop = "j0", strategy = "private">, #lacis.parallel<loop = "j0">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
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

// The elements begin as what the sum begins with; each unit adds to them.
// CHECK-LABEL: func.func @atomic(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, {{.*}}>, %[[Y:[^:]*]]: tensor<?xf32>
// CHECK-NOT:     lacis.workspace
// CHECK:         lacis.loop "i"<nest "j0"> %[[I:.*]] to
// CHECK:           lacis.write %cst to %[[Y]][%[[I]]]
// CHECK:         } begins bind<parallel>
// CHECK:         lacis.loop "i" %[[I2:.*]] to
// CHECK:           lacis.loop "j0"
// CHECK:             %[[OWN:.*]] = lacis.loop "j1"
// CHECK:             lacis.write %[[OWN]] to %[[Y]][%[[I2]]] atomic<fadd>
// CHECK:           } bind<parallel> meets race<"atomic">
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @atomic(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>)
    attributes {lacis.nondeterministic, lacis.steps = [#lacis.split_nnz<loop = "j", parts = 8>, #lacis.race<loop = "j0", strategy = "atomic">, #lacis.parallel<loop = "j0">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
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
