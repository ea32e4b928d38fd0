// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-load-ahead | FileCheck %s

// Two stages: the value of the next round is loaded in this one, its column the round before; the last round loads again.
// CHECK-LABEL: func.func @next(
// CHECK-SAME:    %[[LO:[^:]*]]: i32, %[[HI:[^:]*]]: i32, %[[CRD:[^:]*]]: !llvm.ptr, %[[X:[^:]*]]: !llvm.ptr
// CHECK:         %[[SOME:.*]] = arith.cmpi slt, %[[LO]], %[[HI]]
// CHECK:         %[[FIRST:.*]] = scf.if %[[SOME]] -> (f32) {
// CHECK:           llvm.load %{{.*}} -> f32
// CHECK:         } else {
// CHECK:         %[[COLUMN:.*]] = scf.if %{{.*}} -> (i32) {
// CHECK:           llvm.load %{{.*}} -> i32
// CHECK:         %[[SUM:.*]]:3 = scf.for %[[P:.*]] = %[[LO]] to %[[HI]] step %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[HELD:.*]] = %[[FIRST]], %[[J:.*]] = %[[COLUMN]])
// CHECK:           %[[LATEST:.*]] = arith.minsi %{{.*}}, %{{.*}}
// CHECK:           %[[OWN:.*]] = llvm.load %{{.*}} -> i32
// CHECK-NEXT:      %[[NEXTJ:.*]] = llvm.freeze %[[OWN]] : i32
// CHECK:           %[[PLACE:.*]] = llvm.getelementptr %[[X]][%[[J]]]
// CHECK:           %[[LOADED:.*]] = llvm.load %[[PLACE]] {{.*}} -> f32
// CHECK-NEXT:      %[[NEXT:.*]] = llvm.freeze %[[LOADED]] : f32
// CHECK-NOT:       llvm.load
// CHECK:           %[[ADDED:.*]] = arith.addf %[[ACC]], %[[HELD]]
// CHECK:           scf.yield %[[ADDED]], %[[NEXT]], %[[NEXTJ]]
// CHECK:         return %[[SUM]]#0
func.func @next(%lo: i32, %hi: i32, %crd: !llvm.ptr, %x: !llvm.ptr) -> f32 {
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %p = %lo to %hi step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %at = llvm.getelementptr %crd[%p] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %j = llvm.load %at : !llvm.ptr -> i32
    %place = llvm.getelementptr %x[%j] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %v = llvm.load %place : !llvm.ptr -> f32
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  } {lacis.name = "j", lacis.pipeline = 2 : i64}
  return %sum : f32
}

// -----

func.func @bound(%hi: i32, %x: !llvm.ptr) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{pipeline: loop 'j' is bound to units, which run its rounds at once}}
  %sum = scf.for %p = %c0 to %hi step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %at = llvm.getelementptr %x[%p] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %v = llvm.load %at : !llvm.ptr -> f32
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  } {lacis.bind = "lane", lacis.name = "j", lacis.pipeline = 2 : i64}
  return %sum : f32
}

// -----

func.func @writes(%hi: i32, %x: !llvm.ptr) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{pipeline: loop 'j' writes in its rounds, or waits for others, so that no load may pass them}}
  %sum = scf.for %p = %c0 to %hi step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %at = llvm.getelementptr %x[%p] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %v = llvm.load %at : !llvm.ptr -> f32
    llvm.store %acc, %at : f32, !llvm.ptr
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  } {lacis.name = "j", lacis.pipeline = 2 : i64}
  return %sum : f32
}

// -----

func.func @alone(%hi: i32, %v: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{pipeline: loop 'j' has no load of its own that depends on its coordinate alone; those of loops and guards inside stay there}}
  %sum = scf.for %p = %c0 to %hi step %c1 iter_args(%acc = %zero) -> (f32) : i32 {
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  } {lacis.name = "j", lacis.pipeline = 2 : i64}
  return %sum : f32
}
