// SPDX-License-Identifier: Apache-2.0
// Transcendental functions are arithmetic, on scalars and vectors, on both targets; what is not there is refused.
// RUN: split-file %s %t
// RUN: lacis-compile %t/good.mlir --target=cpu --emit=llvm -o - | FileCheck %s --implicit-check-not="call float @"
// RUN: lacis-compile %t/good.mlir --target=cpu --emit=obj -o %t/good.o
// RUN: llvm-nm %t/good.o | FileCheck %s --check-prefix=SYMBOLS --implicit-check-not=" U "
// RUN: lacis-compile %t/approximate.mlir --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: not lacis-compile %t/bad.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=BAD

// CHECK-LABEL: define void @all(
// CHECK:       fmul <8 x float>
// SYMBOLS:     T all
// BAD:         train.py:7:2: error: 'math.sin' has no code without a library; write it with exp, log, tanh, erf or sqrt

//--- good.mlir
module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}], output = {dtype = "f32", shape = []},
  launches = [{entry = "all", units = #lacis.size<1>}], index_bits = 32}} {
  func.func @all(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr {llvm.noalias}, %lo: i64, %hi: i64) {
    %v = llvm.load %x : !llvm.ptr -> vector<8xf32>
    %a = math.exp %v : vector<8xf32>
    %b = math.erf %a : vector<8xf32>
    %c = math.tanh %b : vector<8xf32>
    %d = math.log %c : vector<8xf32>
    %e = math.expm1 %d : vector<8xf32>
    %f = math.log1p %e : vector<8xf32>
    %g = math.exp2 %f : vector<8xf32>
    %h = math.log2 %g : vector<8xf32>
    %i = math.rsqrt %h : vector<8xf32>
    llvm.store %i, %y : vector<8xf32>, !llvm.ptr
    %s = llvm.load %x : !llvm.ptr -> bf16
    %t = math.exp %s : bf16
    llvm.store %t, %y : bf16, !llvm.ptr
    return
  }
}
// What a half type cannot tell from the exact function is an instruction where there is one.
// PTX:         ex2.approx.ftz.f32
// PTX:         ex2.approx.ftz.f32
// PTX:         rcp.approx.ftz.f32
// PTX-NEXT:    mul.f32
// PTX:         ex2.approx.ftz.f32
// PTX:         rcp.approx.ftz.f32
// PTX-NOT:     div.rn
// PTX:         selp
//--- approximate.mlir
module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}], output = {dtype = "f32", shape = []},
  launches = [{entry = "half", grid = [#lacis.size<1>, #lacis.size<1>, #lacis.size<1>], block = [32, 1, 1], shared = 0}], index_bits = 32}} {
  func.func @half(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr {llvm.noalias})
      attributes {lacis.gpu_kernel, lacis.block = array<i64: 32, 1, 1>} {
    %v = llvm.load %x : !llvm.ptr -> f32
    %a = math.exp %v fastmath<afn> : f32
    %b = math.exp2 %a fastmath<afn> : f32
    %d = arith.divf %v, %b fastmath<afn> : f32
    %t = math.tanh %d fastmath<afn> : f32
    llvm.store %t, %y : f32, !llvm.ptr
    return
  }
}
//--- bad.mlir
module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}], output = {dtype = "f32", shape = []},
  launches = [{entry = "sine", units = #lacis.size<1>}], index_bits = 32}} {
  func.func @sine(%x: !llvm.ptr, %lo: i64, %hi: i64) {
    %v = llvm.load %x : !llvm.ptr -> f32
    %a = math.sin %v : f32 loc("train.py":7:2)
    llvm.store %a, %x : f32, !llvm.ptr
    return
  }
}
