// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// Two loops of one sum: what the inner one carries is what the outer one did.
// CHECK-LABEL: func.func @sums(
// CHECK-SAME:    %{{[^:]*}}: tensor<?x?xf32>, %[[Y:[^:]*]]: tensor<?xf32>, %[[N:[^:]*]]: index, %[[M:[^:]*]]: index
// CHECK:         %[[SIZE:.*]] = arith.muli %[[N]], %[[M]]
// CHECK:         lacis.loop "i"
// CHECK:           %[[SUM:.*]] = lacis.loop "h_k" %[[HK:.*]] to %[[SIZE]] iter(%[[CARRIED:.*]] = %{{.*}}) -> (f32) {
// CHECK-DAG:         arith.divui %[[HK]], %[[M]]
// CHECK-DAG:         arith.remui %[[HK]], %[[M]]
// CHECK:             %[[NEXT:.*]] = arith.addf %[[CARRIED]]
// CHECK:             lacis.yield %[[NEXT]]
// CHECK:           lacis.write %[[SUM]] to %[[Y]]
func.func @sums(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %n: index, %m: index)
    attributes {lacis.steps = [#lacis.fuse<outer = "h", inner = "k">]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    %sum = lacis.loop "h" %h to %n iter(%a = %zero) -> (f32) {
      %part = lacis.loop "k" %k to %m iter(%c = %a) -> (f32) {
        %v = lacis.read %x[%h, %k] : tensor<?x?xf32> -> f32
        %next = arith.addf %c, %v : f32
        lacis.yield %next : f32
      }
      lacis.yield %part : f32
    }
    lacis.write %sum to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{fuse: loop 'k' is not the only thing in loop 'h'; reorder them first}}
// expected-note @+1 {{asked for}}
func.func @sum_of_own(%n: index) attributes {lacis.steps = [#lacis.fuse<outer = "h", inner = "k">]} {
  %zero = arith.constant 0.0 : f32
  %sum = lacis.loop "h" %h to %n iter(%a = %zero) -> (f32) {
    %part = lacis.loop "k" %k to %n iter(%c = %zero) -> (f32) {
      lacis.yield %c : f32
    }
    lacis.yield %part : f32
  }
  return
}
