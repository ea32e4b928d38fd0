// SPDX-License-Identifier: Apache-2.0
// Where an assembler is given, the code is a cubin; its log is a gate where that is asked for.
// REQUIRES: ptxas
// RUN: lacis-compile %s --target=cuda:sm_80 --ptxas=%ptxas --check-ptxas --emit=artifact -o - | FileCheck %s
// RUN: lacis-compile %s --target=cuda:sm_90a --ptxas=%ptxas --check-ptxas --emit=artifact -o - | FileCheck %s
// RUN: not lacis-compile %s --target=cuda:sm_90a --ptxas=%ptxas --ptxas-options=--no-such-option 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REFUSED
// RUN: not lacis-compile %s --target=cuda:sm_90a --ptxas=/bin/true 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not lacis-compile %s --target=cuda:sm_90a --ptxas=%t.none 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK: "kind":"cubin"
// REFUSED: error: {{.*}}ptxas failed ({{[0-9]+}}): {{.*}}no-such-option
// NOTHING: error: /bin/true wrote nothing
// REFUSED: note: repeat it with: lacis-compile
// NONE: error: {{.*}}.none failed
module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}], output = {dtype = "f32", shape = []},
  launches = [{entry = "gelu", grid = [#lacis.size<1>, #lacis.size<1>, #lacis.size<1>], block = [32, 1, 1], shared = 0}], index_bits = 32}} {
  func.func @gelu(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr {llvm.noalias})
      attributes {lacis.gpu_kernel, lacis.block = array<i64: 32, 1, 1>} {
    %v = llvm.load %x : !llvm.ptr -> f64
    %e = math.erf %v : f64
    %f = math.exp %e : f64
    %t = math.tanh %f : f64
    llvm.store %t, %y : f64, !llvm.ptr
    return
  }
}
