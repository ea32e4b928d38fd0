// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A packed level has as many positions under each parent; padding is -1, and is kept apart by its validity.
// CHECK-LABEL: func @packed(
// CHECK-SAME:    %[[PARENT:.*]]: i32, %[[PARENTS:.*]]: i32, %{{.*}}: i32)
// CHECK:         %[[WIDTH:.*]] = arith.constant 32 : i32
// CHECK:         %[[SLOTS:.*]] = arith.muli %[[PARENTS]], %[[WIDTH]]
// CHECK:         "test.slots"(%[[SLOTS]])
// CHECK:         %[[LO:.*]] = arith.muli %[[PARENT]], %[[K:.*]] : i32
// CHECK:         %[[HI:.*]] = arith.addi %[[LO]], %[[K]]
// CHECK:         "test.bounds"(%[[LO]], %[[HI]])
// CHECK:         %[[CRD:.*]] = "test.crd"(%[[LO]])
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK:         %[[VALID:.*]] = arith.cmpi sge, %[[CRD]], %[[ZERO]]
// CHECK:         %[[SAFE:.*]] = arith.maxsi %[[CRD]], %[[ZERO]]
// CHECK:         "test.coordinate"(%[[SAFE]], %[[VALID]])
// CHECK:         scf.while
// CHECK:           arith.andi
func.func @packed(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : packed<32>>} {
  return
}

// A width that is known when the tensor is packed.
// CHECK-LABEL: func @runtime(
// CHECK:         %[[WIDTH:.*]] = "test.width"() : () -> i32
// CHECK:         arith.muli %{{.*}}, %[[WIDTH]]
func.func @runtime(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : packed<?>>} {
  return
}
