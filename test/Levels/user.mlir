// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-resolve-kinds -lacis-test-levels | FileCheck %s

// The code of a kind's methods stands where a level of the kind is walked, with indices of the kernel's width.
lacis.kind @runs arrays(first : i32 per parent, start : i32 per own) facts(ordered, unique) {
  bounds(%p) {
    %two = arith.constant 2 : index
    %lo = arith.muli %p, %two : index
    %hi = arith.addi %lo, %two : index
    lacis.answer %lo, %hi : index, index
  }
  open(%p, %lo) {
    %first = lacis.field @first[%p]
    lacis.answer %first : index
  }
  coordinate(%lo, %pos, %state) {
    %start = lacis.field @start[%state]
    %size = lacis.level_size
    %valid = arith.cmpi slt, %start, %size : index
    %next = arith.addi %state, %pos : index
    lacis.answer %start, %valid, %next : index, i1, index
  }
  find(%p, %crd) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %at = scf.while (%s = %p) : (index) -> index {
      %key = lacis.field @start[%s]
      %other = arith.cmpi ne, %key, %crd : index
      scf.condition(%other) %s : index
    } do {
    ^bb0(%s: index):
      %more = arith.addi %s, %one : index
      scf.yield %more : index
    }
    %narrow = arith.index_cast %at : index to i16
    %wide = arith.index_castui %narrow : i16 to index
    %found = arith.cmpi sge, %wide, %zero : index
    lacis.answer %wide, %found : index, i1
  }
}

// CHECK-LABEL: func @walk(
// CHECK-SAME:    %[[P:[^:]*]]: i32, %{{[^:]*}}: i32, %[[CRD:[^:]*]]: i32
// CHECK:         %[[LO:.*]] = arith.muli %[[P]], %{{.*}} : i32
// CHECK:         %[[HI:.*]] = arith.addi %[[LO]], %{{.*}} : i32
// CHECK:         "test.bounds"(%[[LO]], %[[HI]])
// CHECK:         %[[FIRST:.*]] = "test.first"(%[[P]])
// CHECK:         %[[START:.*]] = "test.start"(%[[FIRST]])
// CHECK:         %[[SIZE:.*]] = "test.size"()
// CHECK:         %[[VALID:.*]] = arith.cmpi slt, %[[START]], %[[SIZE]] : i32
// CHECK:         %[[NEXT:.*]] = arith.addi %[[FIRST]], %[[LO]] : i32
// CHECK:         "test.coordinate"(%[[START]], %[[VALID]])
// CHECK:         "test.state"(%[[NEXT]])
// CHECK:         %[[AT:.*]] = scf.while (%[[S:.*]] = %[[P]]) : (i32) -> i32 {
// CHECK:           "test.start"(%[[S]])
// CHECK:         ^bb0(%{{.*}}: i32):
// CHECK:         %[[NARROW:.*]] = arith.trunci %[[AT]] : i32 to i16
// CHECK:         %[[WIDE:.*]] = arith.extui %[[NARROW]] : i16 to i32
// CHECK:         "test.find"(%[[WIDE]], %{{.*}})
func.func @walk(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : @runs>} {
  return
}
