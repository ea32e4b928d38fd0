// SPDX-License-Identifier: Apache-2.0
// Any dumped stage goes back in and gives the same code.
// RUN: rm -rf %t && lacis-compile %s --target=cuda:sm_90a --dump-dir=%t --emit=ptx -o %t.ptx
// RUN: lacis-compile %t/copy-*.target.mlir --target=cuda:sm_90a --emit=ptx -o - | diff - %t.ptx
// RUN: lacis-compile %t/copy-*.llvm.ll --target=cuda:sm_90a --emit=ptx -o - | diff - %t.ptx
// RUN: diff %t/copy-*.ptx.ptx %t.ptx
// RUN: not lacis-compile %t/copy-*.llvm.ll --target=cuda:sm_80 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not lacis-compile %s --target=cuda:sm_90a --emit=loops 2>&1 | FileCheck %s --check-prefix=PAST
// OTHER: error: the LLVM IR was made for target 'cuda:sm_90a', not for 'cuda:sm_80'
// RUN: not lacis-compile %t/copy-*.llvm.ll --target=cuda:sm_90a --emit=loops 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: lacis-compile: --emit: this kernel has no stage 'loops'
// PAST: error: the text is past stage 'loops'

module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}], output = {dtype = "f32", shape = []},
  launches = [{entry = "copy", grid = [#lacis.size<1>, #lacis.size<1>, #lacis.size<1>], block = [32, 1, 1], shared = 0}], index_bits = 32}} {
  func.func @copy(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr {llvm.noalias})
      attributes {lacis.gpu_kernel, lacis.block = array<i64: 32, 1, 1>} {
    %v = llvm.load %x : !llvm.ptr -> f32
    llvm.store %v, %y : f32, !llvm.ptr
    return
  }
}
