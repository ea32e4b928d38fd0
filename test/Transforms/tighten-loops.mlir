// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-tighten-loops | FileCheck %s

// for i in n: if i * 32 + lane < m: acc + v  -->  for i in min(max(m - lane + 31, 0) / 32, n): acc + v
// CHECK-LABEL: func.func @lanes(
// CHECK-SAME:    %[[N:[^:]*]]: i32, %[[M:[^:]*]]: i32, %[[LANE:[^:]*]]: i32
// CHECK:         %[[LEFT:.*]] = arith.subi %[[M]], %[[LANE]]
// CHECK:         %[[UP:.*]] = arith.addi %[[LEFT]], %c31
// CHECK:         %[[SOME:.*]] = arith.maxsi %[[UP]], %c0
// CHECK:         %[[ROUNDS:.*]] = arith.divui %[[SOME]], %c32
// CHECK:         %[[LAST:.*]] = arith.minsi %[[ROUNDS]], %[[N]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[LAST]] step
// CHECK-NOT:       scf.if
// CHECK:           arith.addf
// CHECK-NEXT:      scf.yield
func.func @lanes(%n: i32, %m: i32, %lane: i32, %v: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %first = arith.muli %i, %c32 : i32
    %at = arith.addi %first, %lane : i32
    %inside = arith.cmpi slt, %at, %m : i32
    %next = scf.if %inside -> (f32) {
      %more = arith.addf %acc, %v : f32
      scf.yield %more : f32
    } else {
      scf.yield %acc : f32
    }
    scf.yield %next : f32
  }
  return %sum : f32
}

// A guard that adds something else past the end stays.
// CHECK-LABEL: func.func @other(
// CHECK:         scf.if
func.func @other(%n: i32, %m: i32, %lane: i32, %v: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %first = arith.muli %i, %c32 : i32
    %at = arith.addi %first, %lane : i32
    %inside = arith.cmpi slt, %at, %m : i32
    %next = scf.if %inside -> (f32) {
      %more = arith.addf %acc, %v : f32
      scf.yield %more : f32
    } else {
      scf.yield %v : f32
    }
    scf.yield %next : f32
  }
  return %sum : f32
}
