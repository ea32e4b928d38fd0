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
