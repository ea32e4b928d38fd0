// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A ragged level has a segment under each parent, whose coordinates are places in it.
// CHECK-LABEL: func @ragged(
// CHECK:         %[[LO:.*]] = "test.pos"(%arg0)
// CHECK:         %[[PLACE:.*]] = arith.subi %[[LO]], %[[LO]]
// CHECK:         "test.coordinate"(%[[PLACE]])
func.func @ragged(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<d0 : ragged>} {
  return
}
