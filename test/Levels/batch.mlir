// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// The position of a batch is the number of a copy of the values, by arithmetic.
// CHECK-LABEL: func @batch(
// CHECK-SAME:    %[[PARENT:.*]]: i32, %{{.*}}: i32, %[[CRD:.*]]: i32)
// CHECK:         "test.slots"
// CHECK:         "test.bounds"
// CHECK:         %[[BASE:.*]] = arith.muli %[[PARENT]], %{{.*}}
// CHECK:         %[[FOUND:.*]] = arith.addi %[[BASE]], %[[CRD]]
// CHECK:         "test.locate"(%[[FOUND]])
func.func @batch(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : batch>} {
  return
}
