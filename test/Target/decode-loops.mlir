// RUN: lacis-compile %s --target=cpu --emit=llvm -o - | FileCheck %s
// SPDX-License-Identifier: Apache-2.0
// A loop that takes codes out of bytes: indices in 64 bits, no guards where all hold, and sizes that show what divides them.
module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}, {kind = "dim", operand = 0, dim = 1}],
  tensors = [{operand = 0, dims = [#lacis.size<arg 0>, #lacis.size<arg 1>]}, {operand = 1, dims = [#lacis.size<arg 0>]}],
  sizes = [{name = "i"}, {name = "j", multiple = 128}], output = {dtype = "f32", shape = []},
  launches = [{entry = "pairs", units = #lacis.size<1>}], index_bits = 32}} {

// The number of groups has the zero bits that the size's divisor gives it. Where both entries are there no guard is left, and
// they share the address of their group.
// CHECK-LABEL: define {{.*}}@pairs(
// CHECK:       %[[SIZE:.*]] = lshr i64 %{{.*}}, 2
// CHECK:       and i64 %[[SIZE]], 1073741792
// CHECK:       %[[G:.*]] = phi i64
// CHECK:       load i8
// CHECK:       %[[A:.*]] = and i32 %{{.*}}, 3
// CHECK:       %[[B:.*]] = and i32 %{{.*}}, 3
// CHECK:       icmp {{.*}}ugt i32 %[[B]], %[[A]]
// CHECK:       %[[FIRST:.*]] = shl {{.*}}i64 %[[G]], 2
// CHECK:       %[[GROUP:.*]] = getelementptr <16 x float>, ptr %{{.*}}, i64 %[[FIRST]]
// CHECK:       getelementptr <16 x float>, ptr %[[GROUP]], i64
// CHECK:       fadd <16 x float>
// CHECK-NOT:   icmp
// CHECK:       getelementptr <16 x float>, ptr %[[GROUP]], i64
// CHECK:       fadd <16 x float>
func.func @pairs(%codes: !llvm.ptr, %y: !llvm.ptr, %n: i64, %lo: i64, %hi: i64) {
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %n32 = arith.trunci %n : i64 to i32
  %groups = arith.ceildivui %n32, %c4 : i32
  %s = scf.for %g = %c0 to %groups step %c1 iter_args(%sum = %zero) -> (vector<16xf32>) : i32 {
    %at = arith.extsi %g : i32 to i64
    %0 = llvm.getelementptr %codes[%at] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %1 = llvm.load %0 : !llvm.ptr -> i8
    %byte = arith.extui %1 : i8 to i32
    %a = arith.andi %byte, %c3 : i32
    %2 = arith.shrui %byte, %c2 : i32
    %b = arith.andi %2, %c3 : i32
    %first = arith.muli %g, %c4 : i32
    %holds_a = arith.cmpi sge, %b, %a : i32
    %with_a = scf.if %holds_a -> (vector<16xf32>) {
      %j = arith.addi %first, %a : i32
      %j64 = arith.extsi %j : i32 to i64
      %3 = llvm.getelementptr %y[%j64] : (!llvm.ptr, i64) -> !llvm.ptr, vector<16xf32>
      %4 = llvm.load %3 : !llvm.ptr -> vector<16xf32>
      %5 = arith.addf %sum, %4 : vector<16xf32>
      scf.yield %5 : vector<16xf32>
    } else {
      scf.yield %sum : vector<16xf32>
    }
    %holds_b = arith.cmpi sgt, %b, %a : i32
    %with_b = scf.if %holds_b -> (vector<16xf32>) {
      %j = arith.addi %first, %b : i32
      %j64 = arith.extsi %j : i32 to i64
      %3 = llvm.getelementptr %y[%j64] : (!llvm.ptr, i64) -> !llvm.ptr, vector<16xf32>
      %4 = llvm.load %3 : !llvm.ptr -> vector<16xf32>
      %5 = arith.addf %with_a, %4 : vector<16xf32>
      scf.yield %5 : vector<16xf32>
    } else {
      scf.yield %with_a : vector<16xf32>
    }
    scf.yield %with_b : vector<16xf32>
  }
  llvm.store %s, %y : vector<16xf32>, !llvm.ptr
  return
}

// What a round writes keeps its guards: the next one's might read it.
// CHECK-LABEL: define {{.*}}@written(
// CHECK-COUNT-2: store float
// CHECK-NOT:   store float
func.func @written(%codes: !llvm.ptr, %y: !llvm.ptr, %n: i64, %lo: i64, %hi: i64) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %n32 = arith.trunci %n : i64 to i32
  scf.for %g = %c0 to %n32 step %c1 : i32 {
    %0 = llvm.load %codes : !llvm.ptr -> i8
    %byte = arith.extui %0 : i8 to i32
    %a = arith.shrui %byte, %c2 : i32
    %holds_a = arith.cmpi sge, %a, %g : i32
    scf.if %holds_a {
      llvm.store %one, %y : f32, !llvm.ptr
    }
    %holds_b = arith.cmpi sgt, %a, %c2 : i32
    scf.if %holds_b {
      llvm.store %one, %codes : f32, !llvm.ptr
    }
  }
  return
}
}
