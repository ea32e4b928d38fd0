// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A singleton level has one child per parent, at the parent's own position.
// CHECK-LABEL: func @singleton(
// CHECK-SAME:    %[[PARENT:.*]]: i32, %[[PARENTS:.*]]: i32, %{{.*}}: i32)
// CHECK:         "test.slots"(%[[PARENTS]])
// CHECK:         %[[END:.*]] = arith.addi %[[PARENT]]
// CHECK:         "test.bounds"(%[[PARENT]], %[[END]])
// CHECK:         %[[CRD:.*]] = "test.crd"(%[[PARENT]])
// CHECK:         "test.coordinate"(%[[CRD]]) : (i32)
func.func @singleton(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : singleton>} {
  return
}

// CHECK-LABEL: func @padded(
// CHECK:         "test.coordinate"({{.*}}) : (i32, i1)
func.func @padded(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : singleton<pad=true>>} {
  return
}
