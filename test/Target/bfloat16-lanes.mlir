// RUN: lacis-compile %s --target=cpu --emit=llvm -o - | FileCheck %s
// SPDX-License-Identifier: Apache-2.0
// Sums of bfloat16 hold the even lanes, then the odd ones; what leaves the loop is in order.
module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}],
  output = {dtype = "bf16", shape = []}, launches = [{entry = "sum", units = #lacis.size<1>}], index_bits = 64}} {

// CHECK-LABEL: define {{.*}}@sum(
// CHECK-NOT: zext <32 x i16>
// CHECK: shl <16 x i32> {{.*}}, splat (i32 16)
// CHECK: and <16 x i32> {{.*}}, splat (i32 -65536)
// CHECK: fadd <32 x float>
// CHECK: shufflevector <32 x bfloat> {{.*}} <32 x i32> <i32 0, i32 16, i32 1, i32 17
func.func @sum(%x: !llvm.ptr, %y: !llvm.ptr, %lo: i64, %n: i64) {
  %zero = arith.constant dense<0.0> : vector<32xf32>
  %c32 = arith.constant 32 : i64
  %s = scf.for %i = %lo to %n step %c32 iter_args(%sum = %zero) -> (vector<32xf32>) : i64 {
    %at = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
    %v = llvm.load %at : !llvm.ptr -> vector<32xbf16>
    %w = arith.extf %v : vector<32xbf16> to vector<32xf32>
    %next = arith.addf %sum, %w : vector<32xf32>
    scf.yield %next : vector<32xf32>
  }
  %h = arith.truncf %s : vector<32xf32> to vector<32xbf16>
  llvm.store %h, %y : vector<32xbf16>, !llvm.ptr
  return
}

// What is stored in each round stays in order: putting it back would cost more than it saves.
// CHECK-LABEL: define {{.*}}@copy(
// CHECK-NOT: shufflevector
// CHECK: ret void
func.func @copy(%x: !llvm.ptr, %y: !llvm.ptr, %lo: i64, %n: i64) {
  %c32 = arith.constant 32 : i64
  scf.for %i = %lo to %n step %c32 : i64 {
    %at = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
    %v = llvm.load %at : !llvm.ptr -> vector<32xbf16>
    %w = arith.extf %v : vector<32xbf16> to vector<32xf32>
    %to = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %w, %to : vector<32xf32>, !llvm.ptr
  }
  return
}

// A sum that begins with values in order of which nothing is known stays in order too.
// CHECK-LABEL: define {{.*}}@added(
// CHECK-NOT: and <16 x i32>
// CHECK: ret void
func.func @added(%x: !llvm.ptr, %y: !llvm.ptr, %lo: i64, %n: i64) {
  %begin = llvm.load %y : !llvm.ptr -> vector<32xf32>
  %c32 = arith.constant 32 : i64
  %s = scf.for %i = %lo to %n step %c32 iter_args(%sum = %begin) -> (vector<32xf32>) : i64 {
    %at = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
    %v = llvm.load %at : !llvm.ptr -> vector<32xbf16>
    %w = arith.extf %v : vector<32xbf16> to vector<32xf32>
    %next = arith.addf %sum, %w : vector<32xf32>
    scf.yield %next : vector<32xf32>
  }
  llvm.store %s, %y : vector<32xf32>, !llvm.ptr
  return
}
}
