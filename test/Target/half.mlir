// SPDX-License-Identifier: Apache-2.0
// Half types: instructions on the GPU, integer arithmetic on processors without them; never a library call.
// RUN: lacis-compile %s --target=cpu --cpu=x86-64-v3 --emit=asm -o - | FileCheck %s --check-prefix=CPU --implicit-check-not=call
// RUN: lacis-compile %s --target=cpu --cpu=znver4 --emit=obj -o %t.o
// RUN: llvm-nm %t.o | FileCheck %s --check-prefix=SYMBOLS --implicit-check-not=" U "

module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}],
  output = {dtype = "bf16", shape = []}, launches = [{entry = "half", units = #lacis.size<1>}], index_bits = 32}} {
  // CPU-LABEL: half:
  // CPU:       vcvtph2ps
  // CPU:       $32767
  // SYMBOLS:   T half
  func.func @half(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr {llvm.noalias}, %lo: i64, %hi: i64) {
    %c1 = arith.constant 1 : i64
    scf.for %i = %lo to %hi step %c1 : i64 {
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f16
      %v = llvm.load %p : !llvm.ptr -> f16
      %w = arith.extf %v : f16 to f32
      %h = arith.truncf %w : f32 to bf16
      %s = arith.addf %h, %h : bf16
      %q = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
      llvm.store %s, %q : bf16, !llvm.ptr
    }
    return
  }
}
