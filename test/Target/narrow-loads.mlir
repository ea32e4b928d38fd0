// RUN: lacis-compile %s --target=cpu --emit=llvm -o - | FileCheck %s
// SPDX-License-Identifier: Apache-2.0
// Neighbours of 16 bits without a sign are one load of 32.
module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}],
  output = {dtype = "f32", shape = []}, launches = [{entry = "pair", units = #lacis.size<1>}], index_bits = 64}} {

// CHECK-LABEL: define {{.*}}@pair(
// CHECK:       %[[WORD:.*]] = load i32, ptr %{{.*}}, align 2
// CHECK-NOT:   load
// CHECK-DAG:   and i32 %[[WORD]], 65535
// CHECK-DAG:   lshr i32 %[[WORD]], 16
func.func @pair(%x: !llvm.ptr, %y: !llvm.ptr, %lo: i64, %n: i64) {
  %c1 = arith.constant 1 : i64
  %0 = llvm.getelementptr %x[%lo] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %a = llvm.load %0 : !llvm.ptr -> i16
  %a32 = arith.extui %a : i16 to i32
  %next = arith.addi %lo, %c1 : i64
  %1 = llvm.getelementptr %x[%next] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %b = llvm.load %1 : !llvm.ptr -> i16
  %b32 = arith.extui %b : i16 to i32
  %s = arith.muli %a32, %b32 : i32
  llvm.store %s, %y : i32, !llvm.ptr
  return
}

// A sign would have to be extended, which costs what the load saves.
// CHECK-LABEL: define {{.*}}@signs(
// CHECK-COUNT-2: load i16
func.func @signs(%x: !llvm.ptr, %y: !llvm.ptr, %lo: i64, %n: i64) {
  %c1 = arith.constant 1 : i64
  %0 = llvm.getelementptr %x[%lo] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %a = llvm.load %0 : !llvm.ptr -> i16
  %a32 = arith.extsi %a : i16 to i32
  %next = arith.addi %lo, %c1 : i64
  %1 = llvm.getelementptr %x[%next] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %b = llvm.load %1 : !llvm.ptr -> i16
  %b32 = arith.extsi %b : i16 to i32
  %s = arith.muli %a32, %b32 : i32
  llvm.store %s, %y : i32, !llvm.ptr
  return
}

// What is written in between may be the second one.
// CHECK-LABEL: define {{.*}}@written(
// CHECK:       load i16
// CHECK:       store i16
// CHECK:       load i16
func.func @written(%x: !llvm.ptr, %y: !llvm.ptr, %lo: i64, %n: i64) {
  %c1 = arith.constant 1 : i64
  %zero = arith.constant 0 : i16
  %0 = llvm.getelementptr %x[%lo] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %a = llvm.load %0 : !llvm.ptr -> i16
  %a32 = arith.extui %a : i16 to i32
  llvm.store %zero, %y : i16, !llvm.ptr
  %next = arith.addi %lo, %c1 : i64
  %1 = llvm.getelementptr %x[%next] : (!llvm.ptr, i64) -> !llvm.ptr, i16
  %b = llvm.load %1 : !llvm.ptr -> i16
  %b32 = arith.extui %b : i16 to i32
  %s = arith.muli %a32, %b32 : i32
  llvm.store %s, %y : i32, !llvm.ptr
  return
}
}
