// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// Each unit of a loop that carries a sum keeps its own in a copy of the output; a nest after adds the copies in order.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?x?xf32>{{.*}}, %[[Y:[^:]*]]: tensor<?xf32>
// CHECK:         %[[COPIES:.*]] = lacis.workspace(%{{.*}}, %{{.*}}) : tensor<?x?xf32
// CHECK:         lacis.loop "b" %[[B:.*]] to
// CHECK:           lacis.loop "k0" %[[UNIT:.*]] to %{{[^ ]*}} {
// CHECK:             %[[OWN:.*]] = lacis.loop "k1"
// CHECK:             lacis.write %[[OWN]] to %[[COPIES]][%[[UNIT]], %[[B]]]
// CHECK:           } bind<parallel> meets race<"private">
// CHECK:         lacis.loop "b"<nest "k0"> %[[B2:.*]] to
// CHECK:           %[[SUM:.*]] = lacis.loop "k0"<nest "k0"> %[[NEXT:.*]] to %{{.*}} iter(%[[ACC:.*]] = %{{.*}}) -> (f32) {
// CHECK:             %[[COPY:.*]] = lacis.read %[[COPIES]][%[[NEXT]], %[[B2]]]
// CHECK:             %[[R:.*]] = arith.addf %[[ACC]], %[[COPY]]
// CHECK:             lacis.yield %[[R]]
// CHECK:           lacis.write %[[SUM]] to %[[Y]][%[[B2]]]
func.func @sum(%x: tensor<?x?xf32> {lacis.axes = ["b", "k"], lacis.name = "x"}, %y: tensor<?xf32>)
    attributes {lacis.steps = [#lacis.split<loop = "k", factor = 16>, #lacis.race<loop = "k0", strategy = "private">, #lacis.parallel<loop = "k0">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    %s = lacis.loop "k" %k to %m iter(%acc = %zero) -> (f32) {
      %v = lacis.read %x[%b, %k] : tensor<?x?xf32> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// A share of entries keeps the part of a row at the row's place in its copy.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[N:[^:]*]]: index
// CHECK:         %[[COPIES:.*]] = lacis.workspace(%{{.*}}, %[[N]]) : tensor<?x?xf32
// CHECK:         lacis.loop "i_j0" %[[SHARE:.*]] to
// CHECK:           lacis.loop "i"
// CHECK:             %[[ROW:.*]] = arith.addi
// CHECK:             lacis.write %{{.*}} to %[[COPIES]][%[[SHARE]], %[[ROW]]]
// CHECK:         } bind<parallel> meets race<"private">
// CHECK:         lacis.loop "i"<nest "i_j"> %[[DONE:.*]] to
// CHECK:           lacis.read %[[COPIES]][%{{.*}}, %[[DONE]]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>, #lacis.race<loop = "i_j0", strategy = "private">]} {
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

// expected-error @+2 {{race: 'private' copies of the output would take 4294967296 bytes, more than 1073741824; none would do}}
// expected-note @+1 {{asked for}}
func.func @large(%x: tensor<4096x4096xf32>, %y: tensor<4096xf32>) attributes {lacis.steps = [#lacis.race<loop = "k", strategy = "private">]} {
  %zero = arith.constant 0.0 : f32
  %b = arith.constant 262144 : index
  %m = arith.constant 4096 : index
  lacis.loop "b" %i to %b {
    %s = lacis.loop "k" %k to %m iter(%acc = %zero) -> (f32) {
      %v = lacis.read %x[%i, %k] : tensor<4096x4096xf32> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<4096xf32>
    lacis.yield
  }
  return
}
