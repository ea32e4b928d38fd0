// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A range has a position for every coordinate, found by arithmetic; a nest tests what follows from it.
// CHECK-LABEL: func @range(
// CHECK-SAME:    %[[PARENT:.*]]: i32, %{{.*}}: i32, %[[CRD:.*]]: i32)
// CHECK:         "test.slots"
// CHECK:         "test.bounds"
// CHECK:         %[[BASE:.*]] = arith.muli %[[PARENT]], %{{.*}}
// CHECK:         %[[FOUND:.*]] = arith.addi %[[BASE]], %[[CRD]]
// CHECK:         "test.locate"(%[[FOUND]])
func.func @range(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : range>} {
  return
}
