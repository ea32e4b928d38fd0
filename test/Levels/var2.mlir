// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A segment has both ends stored.
// CHECK-LABEL: func @segments(
// CHECK-SAME:    %[[PARENT:[^:]*]]: i32
// CHECK:         %[[LO:.*]] = "test.lo"(%[[PARENT]])
// CHECK:         %[[HI:.*]] = "test.hi"(%[[PARENT]])
// CHECK:         "test.bounds"(%[[LO]], %[[HI]])
// CHECK:         "test.crd"(%[[LO]])
func.func @segments(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : var2*crd>} {
  return
}
