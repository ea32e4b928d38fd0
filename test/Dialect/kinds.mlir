// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

// A kind of the user's is an operation: arrays, facts, and methods that are code.
// CHECK-LABEL: lacis.kind @runs arrays(pos : i32 per parent plus 1, start : ui16 per own) facts(ordered, unique, fills) {
// CHECK-NEXT:    bounds(%[[P:.*]]) {
// CHECK-NEXT:      %[[LO:.*]] = lacis.field @pos[%[[P]]]
// CHECK:           lacis.answer %[[LO]], %{{.*}} : index, index
// CHECK:         open(%{{.*}}, %{{.*}}) {
// CHECK:         coordinate(%[[LO:.*]], %[[POS:.*]], %[[STATE:.*]]) {
// CHECK:           %[[SIZE:.*]] = lacis.level_size
// CHECK:           lacis.answer %{{.*}}, %{{.*}}, %{{.*}} : index, i1, index
lacis.kind @runs arrays(pos : i32 per parent plus 1, start : ui16 per own) facts(ordered, unique, fills) {
  bounds(%p) {
    %lo = lacis.field @pos[%p]
    %one = arith.constant 1 : index
    %next = arith.addi %p, %one : index
    %hi = lacis.field @pos[%next]
    lacis.answer %lo, %hi : index, index
  }
  open(%p, %lo) {
    lacis.answer %p : index
  }
  coordinate(%lo, %pos, %state) {
    %start = lacis.field @start[%state]
    %crd = arith.addi %start, %pos : index
    %size = lacis.level_size
    %valid = arith.cmpi slt, %crd, %size : index
    lacis.answer %crd, %valid, %state : index, i1, index
  }
}

// CHECK-LABEL: func private @uses(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : @runs)>>)
func.func private @uses(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : @runs)>>)

// As many positions under each parent need no bounds.
// CHECK-LABEL: lacis.kind @pairs arrays(crd : ui32 per position) facts(ordered, fixed = 2) {
// CHECK-NEXT:    coordinate(%{{.*}}, %[[POS:.*]]) {
lacis.kind @pairs arrays(crd : ui32 per position) facts(ordered, fixed = 2) {
  coordinate(%lo, %pos) {
    %crd = lacis.field @crd[%pos]
    lacis.answer %crd : index
  }
}

// The position of a coordinate, and whether it has one.
// CHECK-LABEL: func @finds(
// CHECK:         %{{.*}}, %{{.*}} = lacis.find %{{.*}}[1] at %{{.*}}(%{{.*}}) : tensor<?x?xf32, #lacis.format<
func.func @finds(%w: tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed)>>, %row: index) -> index {
  %at, %found = lacis.find %w[1] at %row(%row) : tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed)>>
  return %at : index
}

// A binding of the user's is a name, and the axes that it is of.
// CHECK-LABEL: func private @bound(tensor<?x?xf32, #lacis.format<(i, j) let z = @morton(i, j) -> (z : compressed)>>)
func.func private @bound(tensor<?x?xf32, #lacis.format<(i, j) let z = @morton(i, j) -> (z : compressed)>>)
