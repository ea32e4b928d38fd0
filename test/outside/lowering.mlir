// SPDX-License-Identifier: Apache-2.0
// RUN: %outside lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A kind from outside emits its own code.
// CHECK-LABEL: func @even(
// CHECK:         %[[LO:.*]] = "test.pos"(%arg0)
// CHECK:         %[[STORED:.*]] = "test.crd"(%[[LO]])
// CHECK:         %[[CRD:.*]] = arith.subi %{{.*}}, %[[STORED]]
// CHECK:         %[[VALID:.*]] = arith.cmpi sge, %[[STORED]]
// CHECK:         %[[SAFE:.*]] = arith.select %[[VALID]], %[[CRD]]
// CHECK:         "test.coordinate"(%[[SAFE]], %[[VALID]])
func.func @even(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : even*mirrored>} {
  return
}

// A kind from outside with state: a run that comes next, and the coordinate before.
// CHECK-LABEL: func @runs(
// CHECK:         %[[FIRST:.*]] = "test.first"(%arg0)
// CHECK:         %[[WORD:.*]] = "test.begins"
// CHECK:         %[[SHIFTED:.*]] = arith.shrui %[[WORD]]
// CHECK:         %[[BIT:.*]] = arith.andi %[[SHIFTED]]
// CHECK:         %[[NEXT:.*]] = arith.addi %[[FIRST]], %[[BIT]]
// CHECK:         %[[START:.*]] = "test.start"
// CHECK:         %[[CRD:.*]] = arith.select %{{.*}}, %[[START]]
// CHECK:         "test.coordinate"(%[[CRD]])
// CHECK:         "test.state"(%[[NEXT]], %[[CRD]])
func.func @runs(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : var*runs>} {
  return
}
