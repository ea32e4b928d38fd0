// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-check-accesses | FileCheck %s

// A load outside of its array is none: its value is zero, and the fault word keeps the least (argument, element).
// CHECK:       kind = "fault"}, {index = 0 : i64, kind = "bytes"}, {index = 1 : i64, kind = "bytes"}]
// CHECK-LABEL: func.func @copy(
// CHECK-SAME:    %[[X:[^:]*]]: !llvm.ptr, %[[Y:[^:]*]]: !llvm.ptr, %[[N:[^:]*]]: i64, %[[FAULT:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[BYTES:[^:]*]]: i64,
// CHECK-NOT:     lacis.checked
// CHECK:         %[[COUNT:.*]] = arith.divui %[[BYTES]], %c4_i64
// CHECK:         %[[LAST:.*]] = arith.subi %[[COUNT]], %c1_i64
// CHECK:         arith.cmpi sge, %[[AT:.*]], %
// CHECK:         arith.cmpi sle, %[[AT]], %[[LAST]]
// CHECK:         %[[V:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK:           llvm.load
// CHECK:         } else {
// CHECK:           llvm.atomicrmw umin %[[FAULT]], %{{.*}} monotonic
// CHECK:           scf.yield %cst
// CHECK:         scf.if
// CHECK-NEXT:      llvm.store %[[V]]
// CHECK:         } else {
// CHECK:           %[[ARRAY:.*]] = arith.constant 281474976710656
// CHECK:           %[[WORD:.*]] = arith.ori %{{.*}}, %[[ARRAY]]
// CHECK:           llvm.atomicrmw umin %[[FAULT]], %[[WORD]]
module attributes {lacis.artifact = {args = [{kind = "operand", operand = 1 : i64}, {kind = "output"}, {kind = "dim", operand = 1 : i64, dim = 0 : i64}]}} {
  func.func @copy(%x: !llvm.ptr, %y: !llvm.ptr, %n: i64) attributes {lacis.kernel, lacis.checked} {
    %p = llvm.getelementptr %x[%n] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %p : !llvm.ptr -> f32
    llvm.store %v, %y : f32, !llvm.ptr
    return
  }
}

// -----

// A vector is guarded as a whole: by its lanes, or by those that its mask begins with.
// CHECK-LABEL: func.func @vectors(
// CHECK:         arith.subi %{{.*}}, %c8_i64
// CHECK:         scf.if %{{.*}} -> (vector<8xf32>)
// CHECK:         %[[LANES:.*]] = arith.extui %{{.*}} : vector<8xi1> to vector<8xi64>
// CHECK:         %[[COUNT:.*]] = vector.reduction <add>, %[[LANES]]
// CHECK:         %[[ANY:.*]] = arith.cmpi sgt, %[[COUNT]]
// CHECK:         arith.subi %{{.*}}, %[[COUNT]]
// CHECK:         scf.if
// CHECK-NEXT:      llvm.intr.masked.store
// CHECK:         } else {
// CHECK-NEXT:      scf.if %[[ANY]]
module attributes {lacis.artifact = {args = [{kind = "operand", operand = 1 : i64}, {kind = "output"}]}} {
  func.func @vectors(%x: !llvm.ptr, %y: !llvm.ptr) attributes {lacis.kernel, lacis.checked} {
    %mask = arith.constant dense<[1, 1, 1, 0, 0, 0, 0, 0]> : vector<8xi1>
    %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
    llvm.intr.masked.store %v, %y, %mask {alignment = 4 : i32} : vector<8xf32>, vector<8xi1> into !llvm.ptr
    return
  }
}

// -----

// A loop whose size comes from memory has no more rounds than the largest array has bytes; others stay.
// CHECK:       {dim = 4 : i64, index = 1 : i64, kind = "bytes", name = "partial results"}
// CHECK-LABEL: func.func @walk(
// CHECK:         arith.maxsi
// CHECK-NEXT:    %[[LONGEST:.*]] = arith.maxsi
// CHECK:         scf.for %{{.*}} = %c0_i32 to %c4_i32
// CHECK:         %[[END:.*]] = arith.addi %{{.*}}, %[[LONGEST]]
// CHECK:         %[[MIN:.*]] = arith.minsi %{{.*}}, %[[END]]
// CHECK:         %[[TO:.*]] = arith.trunci %[[MIN]]
// CHECK:         scf.for %{{.*}} = %c0_i32 to %[[TO]]
module attributes {lacis.artifact = {args = [{kind = "storage", name = "pos1", operand = 0 : i64}, {kind = "workspace", index = 0 : i64}]}} {
  func.func @walk(%pos: !llvm.ptr, %w: !llvm.ptr) attributes {lacis.kernel, lacis.checked} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
    }
    %n = llvm.load %pos : !llvm.ptr -> i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      llvm.store %i, %w : i32, !llvm.ptr
    }
    return
  }
}

// -----

// A kernel that is not marked stays what it is.
// CHECK-LABEL: func.func @unmarked(%arg0: !llvm.ptr) attributes {lacis.kernel} {
// CHECK-NEXT:    llvm.load %arg0
module attributes {lacis.artifact = {args = [{kind = "operand", operand = 1 : i64}]}} {
  func.func @unmarked(%x: !llvm.ptr) attributes {lacis.kernel} {
    %v = llvm.load %x : !llvm.ptr -> f32
    return
  }
}

// -----

module attributes {lacis.artifact = {args = [{kind = "dim", operand = 1 : i64, dim = 0 : i64}]}} {
  func.func @elsewhere(%n: i64) attributes {lacis.kernel, lacis.checked} {
    %p = llvm.inttoptr %n : i64 to !llvm.ptr
    // expected-error @+1 {{check: an access to what is no argument of the kernel}}
    %v = llvm.load %p : !llvm.ptr -> f32
    return
  }
}

// -----

module attributes {lacis.artifact = {args = [{kind = "operand", operand = 1 : i64}]}} {
  func.func @other_size(%x: !llvm.ptr) -> f64 attributes {lacis.kernel, lacis.checked} {
    %p = llvm.getelementptr %x[1] : (!llvm.ptr) -> !llvm.ptr, f32
    // expected-error @+1 {{check: an access to elements of another size than its array has}}
    %v = llvm.load %p : !llvm.ptr -> f64
    return %v : f64
  }
}
