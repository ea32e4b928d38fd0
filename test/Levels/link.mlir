// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -allow-unregistered-dialect -lacis-test-levels | FileCheck %s

// A link is one position under each parent: the slot that it names.
// CHECK-LABEL: func @link(
// CHECK-SAME:    %[[PARENT:.*]]: i32, %{{.*}}: i32, %{{.*}}: i32)
// CHECK:         %[[SLOT:.*]] = "test.link"(%[[PARENT]])
// CHECK:         %[[END:.*]] = arith.addi %[[SLOT]]
// CHECK:         "test.bounds"(%[[SLOT]], %[[END]])
func.func @link(%parent: i32, %parents: i32, %crd: i32) attributes {lacis.level = #lacis.level<link>} {
  return
}
