// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A walk carries the next word, the coordinate before its first bit, and the bits that are left; it takes the lowest one.
// CHECK-LABEL: func @bitmap(
// CHECK-SAME:    %[[PARENT:[^:]*]]: i32
// CHECK:         %[[WORDS:.*]] = arith.divui
// CHECK:         %[[FIRST:.*]] = arith.muli %[[PARENT]], %[[WORDS]]
// CHECK:         %[[FOUND:.*]]:3 = scf.while (%[[NEXT:.*]] = %[[FIRST]], %[[BASE:.*]] = %{{.*}}, %[[BITS:.*]] = %{{.*}})
// CHECK:           %[[NONE:.*]] = arith.cmpi eq, %[[BITS]]
// CHECK:           %[[MORE:.*]] = arith.cmpi slt
// CHECK:           %[[ON:.*]] = arith.andi %[[NONE]], %[[MORE]]
// CHECK:           scf.condition(%[[ON]])
// CHECK:           "test.bits"
// CHECK:         %[[BIT:.*]] = math.cttz %[[FOUND]]#2
// CHECK:         %[[CRD:.*]] = arith.addi %[[FOUND]]#1, %[[BIT]]
// CHECK:         %[[BELOW:.*]] = arith.subi %[[FOUND]]#2
// CHECK:         %[[REST:.*]] = arith.andi %[[FOUND]]#2, %[[BELOW]]
// CHECK:         "test.coordinate"(%[[CRD]]) : (i32)
// CHECK:         "test.state"(%[[FOUND]]#0, %[[FOUND]]#1, %[[REST]])
func.func @bitmap(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : bitmap>} {
  return
}

// A coordinate is found by its bit, and by the bits below it.
// CHECK-LABEL: func @find(
// CHECK-SAME:    %[[PARENT:[^:]*]]: i32, %{{[^:]*}}: i32, %[[CRD:[^:]*]]: i32
// CHECK:         %[[NUMBER:.*]] = arith.divui %[[CRD]]
// CHECK:         %[[BIT:.*]] = arith.remui %[[CRD]]
// CHECK:         %[[OWN:.*]] = "test.bits"
// CHECK:         %[[MASK:.*]] = arith.shli %{{.*}}, %[[BIT]]
// CHECK:         %[[HAS:.*]] = arith.andi %[[OWN]], %[[MASK]]
// CHECK:         %[[IS:.*]] = arith.cmpi ne, %[[HAS]]
// CHECK:         %[[LO:.*]] = "test.pos"(%[[PARENT]])
// CHECK:         %[[BEFORE:.*]] = scf.for {{.*}} to %[[NUMBER]] {{.*}} iter_args(%{{.*}} = %[[LO]])
// CHECK:           math.ctpop
// CHECK:         %[[LAST:.*]] = arith.subi %[[MASK]]
// CHECK:         %[[BELOW:.*]] = arith.andi %[[OWN]], %[[LAST]]
// CHECK:         %[[COUNT:.*]] = math.ctpop %[[BELOW]]
// CHECK:         %[[AT:.*]] = arith.addi %[[BEFORE]], %[[COUNT]]
// CHECK:         "test.find"(%[[AT]], %[[IS]])
func.func @find(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : var*bitmap>} {
  return
}

// Where a fibre has room for a number of entries, the bits say how many there are.
// CHECK-LABEL: func @room(
// CHECK:         %[[VALID:.*]] = arith.cmpi ne
// CHECK:         "test.coordinate"(%{{.*}}, %[[VALID]])
func.func @room(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 mod 64 : fixed*bitmap<8>>} {
  return
}
