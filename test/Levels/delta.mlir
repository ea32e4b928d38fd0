// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// An entry lies 1 + delta behind the one before; all bits set are no entry, and as many coordinates to leave out.
// CHECK-LABEL: func @delta(
// CHECK:         %[[BEFORE:.*]] = arith.constant -1 : i32
// CHECK:         %[[DELTA:.*]] = "test.delta"
// CHECK:         %[[ALL:.*]] = arith.constant 255 : i32
// CHECK:         %[[VALID:.*]] = arith.cmpi ne, %[[DELTA]], %[[ALL]]
// CHECK:         %[[BEHIND:.*]] = arith.addi %[[DELTA]]
// CHECK:         %[[STEP:.*]] = arith.select %[[VALID]], %[[BEHIND]], %[[ALL]]
// CHECK:         %[[CRD:.*]] = arith.addi %[[BEFORE]], %[[STEP]]
// CHECK:         "test.coordinate"(%[[CRD]], %[[VALID]])
// CHECK:         "test.state"(%[[CRD]])
func.func @delta(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : var*delta<8>>} {
  return
}
