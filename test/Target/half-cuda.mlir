// SPDX-License-Identifier: Apache-2.0
// The GPU rounds to bf16 by an instruction, from sm_80 up.
// RUN: lacis-compile %s --target=cuda:sm_80 --emit=ptx -o - | FileCheck %s
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s

module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}], output = {dtype = "bf16", shape = []},
  launches = [{entry = "half", grid = [#lacis.size<1>, #lacis.size<1>, #lacis.size<1>], block = [32, 1, 1], shared = 0}], index_bits = 32}} {
  // CHECK: .entry half(
  // CHECK: cvt.f32.f16
  // CHECK: cvt.rn.bf16.f32
  func.func @half(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr {llvm.noalias})
      attributes {lacis.gpu_kernel, lacis.block = array<i64: 32, 1, 1>} {
    %v = llvm.load %x : !llvm.ptr -> f16
    %w = arith.extf %v : f16 to f32
    %h = arith.truncf %w : f32 to bf16
    llvm.store %h, %y : bf16, !llvm.ptr
    return
  }
}
