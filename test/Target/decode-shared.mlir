// RUN: lacis-compile %s --target=cpu --emit=llvm -o - | FileCheck %s
// SPDX-License-Identifier: Apache-2.0
// What rounds that take codes out of bytes share.
module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}, {kind = "dim", operand = 0, dim = 1}],
  tensors = [{operand = 0, dims = [#lacis.size<arg 0>, #lacis.size<arg 1>]}, {operand = 1, dims = [#lacis.size<arg 0>]}],
  sizes = [{name = "i"}, {name = "j", multiple = 128}], output = {dtype = "f32", shape = []},
  launches = [{entry = "shared", units = #lacis.size<1>}], index_bits = 32}} {

// Two rounds read one byte, and what an index has more than the one before is added to the address that they share.
// CHECK-LABEL: define {{.*}}@shared(
// CHECK:       load i8
// CHECK-NOT:   load i8
// CHECK:       %[[AHEAD:.*]] = getelementptr i8, ptr %{{.*}}, i64 16
// CHECK:       getelementptr float, ptr %[[AHEAD]], i64
func.func @shared(%codes: !llvm.ptr, %y: !llvm.ptr, %n: i64, %lo: i64, %hi: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %n32 = arith.trunci %n : i64 to i32
  %even = arith.muli %n32, %c2 : i32
  scf.for %g = %c0 to %n32 step %c2 : i32 {
    %a0 = arith.addi %g, %c0 : i32
    %a1 = arith.addi %even, %a0 : i32
    %a2 = arith.divui %a1, %c2 : i32
    %a3 = arith.extsi %a2 : i32 to i64
    %a4 = llvm.getelementptr %codes[%a3] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %a5 = llvm.load %a4 : !llvm.ptr -> i8
    %a6 = arith.extui %a5 : i8 to i32
    %a7 = arith.shrui %a6, %c0 : i32
    %a8 = arith.andi %a7, %c3 : i32
    %a9 = arith.muli %a0, %c4 : i32
    %aa = arith.addi %a9, %a8 : i32
    %ab = arith.extsi %aa : i32 to i64
    %ac = llvm.getelementptr %y[%ab] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %ad = llvm.load %ac : !llvm.ptr -> f32
    %b0 = arith.addi %g, %c1 : i32
    %b1 = arith.addi %even, %b0 : i32
    %b2 = arith.divui %b1, %c2 : i32
    %b3 = arith.extsi %b2 : i32 to i64
    %b4 = llvm.getelementptr %codes[%b3] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %b5 = llvm.load %b4 : !llvm.ptr -> i8
    %b6 = arith.extui %b5 : i8 to i32
    %b7 = arith.shrui %b6, %c2 : i32
    %b8 = arith.andi %b7, %c3 : i32
    %b9 = arith.muli %b0, %c4 : i32
    %ba = arith.addi %b9, %b8 : i32
    %bb = arith.extsi %ba : i32 to i64
    %bc = llvm.getelementptr %y[%bb] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %bd = llvm.load %bc : !llvm.ptr -> f32
    %sum = arith.addf %ad, %bd : f32
    llvm.store %sum, %y : f32, !llvm.ptr
  }
  return
}
}
