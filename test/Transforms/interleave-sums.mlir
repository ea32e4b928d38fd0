// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-interleave-sums | FileCheck %s

// Four rounds at once for two sums: the rounds left over come first, then each sum takes every second one.
// CHECK-LABEL: func.func @sums(
// CHECK-SAME:    %[[LO:[^:]*]]: i32, %[[HI:[^:]*]]: i32, %[[X:[^:]*]]: memref<?xf32>
// CHECK:         %[[START:.*]] = arith.constant 1.0
// CHECK:         %[[ZERO:.*]] = arith.constant 0.0
// CHECK:         %[[COUNT:.*]] = arith.subi %[[HI]], %[[LO]]
// CHECK:         %[[SOME:.*]] = arith.maxsi %[[COUNT]]
// CHECK:         %[[OVER:.*]] = arith.remui %[[SOME]], %c4
// CHECK:         %[[MIDDLE:.*]] = arith.addi %[[LO]], %[[OVER]]
// CHECK:         %[[REST:.*]] = scf.for %{{.*}} = %[[LO]] to %[[MIDDLE]] step %c1{{.*}} iter_args(%{{.*}} = %[[START]])
// CHECK:         %[[MAIN:.*]]:2 = scf.for %{{.*}} = %[[MIDDLE]] to %[[HI]] step %c4{{.*}} iter_args(%[[A:.*]] = %[[ZERO]], %[[B:.*]] = %[[ZERO]])
// CHECK:           %[[A1:.*]] = arith.addf %[[A]]
// CHECK:           %[[B1:.*]] = arith.addf %[[B]]
// CHECK:           %[[A2:.*]] = arith.addf %[[A1]]
// CHECK:           %[[B2:.*]] = arith.addf %[[B1]]
// CHECK:           scf.yield %[[A2]], %[[B2]]
// CHECK:         %[[FIRST:.*]] = arith.addf %[[REST]], %[[MAIN]]#0
// CHECK:         %[[ALL:.*]] = arith.addf %[[FIRST]], %[[MAIN]]#1
// CHECK:         return %[[ALL]]
func.func @sums(%lo: i32, %hi: i32, %x: memref<?xf32>) -> f32 {
  %c1 = arith.constant 1 : i32
  %start = arith.constant 1.0 : f32
  %sum = scf.for %i = %lo to %hi step %c1 iter_args(%acc = %start) -> (f32) : i32 {
    %at = arith.index_cast %i : i32 to index
    %v = memref.load %x[%at] : memref<?xf32>
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  } {lacis.reduce = #lacis.reduction<add>, lacis.rounds = 4 : i64, lacis.sums = 2 : i64}
  return %sum : f32
}

// The largest of lanes begins at -infinity; where a guard passes the sum on, it does so for each sum.
// CHECK-LABEL: func.func @guarded(
// CHECK:         arith.constant dense<0xFF800000> : vector<4xf32>
// CHECK-COUNT-3: scf.if
// CHECK-NOT:     scf.if
// CHECK-COUNT-2: arith.maximumf
func.func @guarded(%hi: i32, %on: i1, %v: vector<4xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %low = arith.constant dense<-1.0> : vector<4xf32>
  %most = scf.for %i = %c0 to %hi step %c1 iter_args(%acc = %low) -> (vector<4xf32>) : i32 {
    %next = scf.if %on -> (vector<4xf32>) {
      %larger = arith.maximumf %acc, %v : vector<4xf32>
      scf.yield %larger : vector<4xf32>
    } else {
      scf.yield %acc : vector<4xf32>
    }
    scf.yield %next : vector<4xf32>
  } {lacis.reduce = #lacis.reduction<max>, lacis.rounds = 2 : i64, lacis.sums = 2 : i64}
  return %most : vector<4xf32>
}

// A loop that does not say how its rounds are added up stays as it is.
// CHECK-LABEL: func.func @unknown(
// CHECK:         scf.for
// CHECK-NOT:     scf.for
func.func @unknown(%hi: i32, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %last = scf.for %i = %c0 to %hi step %c1 iter_args(%acc = %x) -> (f32) : i32 {
    %next = arith.subf %acc, %x : f32
    scf.yield %next : f32
  } {lacis.rounds = 2 : i64, lacis.sums = 2 : i64}
  return %last : f32
}
