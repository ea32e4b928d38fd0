// SPDX-License-Identifier: Apache-2.0
// A function over a range of units becomes one vectorised object that calls nothing.
// RUN: lacis-compile %s --target=cpu --cpu=znver4 --emit=llvm -o - | FileCheck %s --check-prefix=LLVM
// RUN: lacis-compile %s --target=cpu --cpu=znver4 --emit=asm -o - | FileCheck %s --check-prefix=ASM
// RUN: lacis-compile %s --target=cpu --emit=obj -o %t.o
// RUN: llvm-nm %t.o | FileCheck %s --check-prefix=SYMBOLS --implicit-check-not=" U "

module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}, {kind = "dim", operand = 1, dim = 0}],
  output = {dtype = "f32", shape = [#lacis.size<arg 2>]},
  launches = [{entry = "double", units = #lacis.size<arg 2>}], index_bits = 32}} {
  // LLVM:       target triple = "x86_64
  // LLVM-LABEL: define void @double(ptr noalias readonly captures(none) %0, ptr noalias writeonly captures(none) %1, i64 %2
  // LLVM:       fmul <{{[0-9]+}} x float>
  // LLVM:       !lacis.artifact = !{
  // ASM-LABEL:  double:
  // ASM:        vfmadd{{.*}}%zmm
  // SYMBOLS:    T double
  func.func @double(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr {llvm.noalias}, %n: i64, %lo: i64, %hi: i64) {
    %c1 = arith.constant 1 : i64
    %two = arith.constant 2.5 : f32
    %one = arith.constant 1.5 : f32
    scf.for %i = %lo to %hi step %c1 : i64 {
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %m = arith.mulf %v, %two : f32
      %s = arith.addf %m, %one : f32
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %s, %q : f32, !llvm.ptr
    }
    return
  }
}
