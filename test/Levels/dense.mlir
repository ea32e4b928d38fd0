// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A dense level has a position for every coordinate, found by arithmetic.
// CHECK-LABEL: func @dense(
// CHECK-SAME:    %[[PARENT:.*]]: i32, %[[PARENTS:.*]]: i32, %[[CRD:.*]]: i32)
// CHECK:         %[[SIZE:.*]] = "test.size"
// CHECK:         %[[SLOTS:.*]] = arith.muli %[[PARENTS]], %[[SIZE]]
// CHECK:         "test.slots"(%[[SLOTS]])
// CHECK:         %[[LO:.*]] = arith.muli %[[PARENT]], %{{.*}}
// CHECK:         %[[HI:.*]] = arith.addi %[[LO]], %{{.*}}
// CHECK:         "test.bounds"(%[[LO]], %[[HI]])
// CHECK:         %[[PLACE:.*]] = arith.subi %[[LO]], %[[LO]]
// CHECK:         "test.coordinate"(%[[PLACE]])
// CHECK:         %[[POS:.*]] = arith.addi %[[LO]], %[[CRD]]
// CHECK:         %[[SEEK:.*]] = arith.minsi %[[POS]], %[[HI]]
// CHECK:         "test.seek"(%[[SEEK]])
// CHECK:         %[[BASE:.*]] = arith.muli %[[PARENT]], %{{.*}}
// CHECK:         %[[FOUND:.*]] = arith.addi %[[BASE]], %[[CRD]]
// CHECK:         "test.locate"(%[[FOUND]])
func.func @dense(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : dense>} {
  return
}
