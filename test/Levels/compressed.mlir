// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A compressed level keeps the segment of each parent in pos, its coordinates in crd; seek is a binary search.
// CHECK-LABEL: func @compressed(
// CHECK-SAME:    %[[PARENT:.*]]: i32, %[[PARENTS:.*]]: i32, %[[CRD:.*]]: i32)
// CHECK:         %[[SLOTS:.*]] = "test.pos"(%[[PARENTS]])
// CHECK:         "test.slots"(%[[SLOTS]])
// CHECK:         %[[NEXT:.*]] = arith.addi %[[PARENT]], %{{.*}}
// CHECK:         %[[LO:.*]] = "test.pos"(%[[PARENT]])
// CHECK:         %[[HI:.*]] = "test.pos"(%[[NEXT]])
// CHECK:         "test.bounds"(%[[LO]], %[[HI]])
// CHECK:         %[[HERE:.*]] = "test.crd"(%[[LO]])
// CHECK:         "test.coordinate"(%[[HERE]])
// CHECK:         %[[FOUND:.*]]:2 = scf.while (%[[L:.*]] = %[[LO]], %[[H:.*]] = %[[HI]])
// CHECK:           %[[OPEN:.*]] = arith.cmpi slt, %[[L]], %[[H]]
// CHECK:           scf.condition(%[[OPEN]])
// CHECK:           %[[MIDDLE:.*]] = "test.crd"
// CHECK:           %[[BEFORE:.*]] = arith.cmpi slt, %[[MIDDLE]], %[[CRD]]
// CHECK:           arith.select %[[BEFORE]]
// CHECK:         "test.seek"(%[[FOUND]]#0)
func.func @compressed(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : compressed>} {
  return
}

// Nothing can be sought where coordinates do not ascend.
// CHECK-LABEL: func @unordered(
// CHECK-NOT:     scf.while
// CHECK:         "test.seek"() :
func.func @unordered(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : compressed<ordered=false>>} {
  return
}
