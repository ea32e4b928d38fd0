// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// The first of a group is an entry unless the next code is below its own, another one if its code is above that before.
// CHECK-LABEL: func @two_of_four(
// CHECK:         "test.bounds"(%[[LO:[^,]*]],
// CHECK:         %[[AT:.*]] = arith.divui %[[LO]], %[[EACH:.*]] :
// CHECK:         %[[BYTE:.*]] = "test.code"(%[[AT]])
// CHECK:         %[[PLACE:.*]] = arith.remui %[[LO]]
// CHECK:         %[[SHIFT:.*]] = arith.muli %[[PLACE]]
// CHECK:         %[[SHIFTED:.*]] = arith.shrui %[[BYTE]], %[[SHIFT]]
// CHECK:         %[[CODE:.*]] = arith.andi %[[SHIFTED]]
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %[[LO]], %[[LO]]
// CHECK:         arith.select %[[FIRST]]
// CHECK:         "test.code"
// CHECK:         %[[OTHER:.*]] = arith.andi
// CHECK:         %[[KEPT:.*]] = arith.cmpi sge, %[[OTHER]], %[[CODE]]
// CHECK:         %[[ABOVE:.*]] = arith.cmpi sgt, %[[CODE]], %[[OTHER]]
// CHECK:         %[[VALID:.*]] = arith.select %[[FIRST]], %[[KEPT]], %[[ABOVE]]
// CHECK:         "test.coordinate"(%[[CODE]], %[[VALID]])
func.func @two_of_four(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 mod 4 : structured<2>>} {
  return
}

// One of three has the code 3 for none.
// CHECK-LABEL: func @one_of_three(
// CHECK:         %[[CODE:.*]] = arith.andi
// CHECK:         %[[NONE:.*]] = arith.constant 3
// CHECK:         %[[VALID:.*]] = arith.cmpi slt, %[[CODE]], %[[NONE]]
// CHECK:         %[[SAFE:.*]] = arith.minsi %[[CODE]]
// CHECK:         "test.coordinate"(%[[SAFE]], %[[VALID]])
func.func @one_of_three(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 mod 3 : structured<1>>} {
  return
}
