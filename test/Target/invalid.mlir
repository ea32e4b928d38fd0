// SPDX-License-Identifier: Apache-2.0
// Every refusal has a message and leaves with 1; wrong usage leaves with 2.
// RUN: split-file %s %t
// RUN: not lacis-compile %t/good.mlir --target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not lacis-compile %t/good.mlir --target=cuda 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not lacis-compile %t/good.mlir --target=cuda:sm_9999 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not lacis-compile %t/good.mlir --target=cpu:znver4 2>&1 | FileCheck %s --check-prefix=CPUARCH
// RUN: not lacis-compile %t/good.mlir --target=cpu --cpu=pentium9 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not lacis-compile %t/good.mlir --target=cpu --features=+warp 2>&1 | FileCheck %s --check-prefix=FEATURE
// RUN: not lacis-compile %t/good.mlir --target=cpu --emit=ptx 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not lacis-compile %t/stage.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=MARK
// RUN: not lacis-compile %t/syntax.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=SYNTAX
// RUN: not lacis-compile %t/record.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=RECORD
// RUN: not lacis-compile %t/entry.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not lacis-compile %t/arguments.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=ARGUMENTS
// RUN: not lacis-compile %t/block.mlir --target=cuda:sm_80 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not lacis-compile %t/order.ll --target=cpu 2>&1 | FileCheck %s --check-prefix=INVALID
// RUN: not lacis-compile %t/call.mlir --target=cpu 2>&1 | FileCheck %s --check-prefix=CALL
// An LLVM fatal error is an error like others.
// RUN: not lacis-compile %t/good.mlir --target=cuda:sm_90a --features=+ptx60 2>&1 | FileCheck %s --check-prefix=FATAL
// RUN: not lacis-compile %t/good.mlir --opt-level=7 --target=cpu 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: lacis-compile %t/good.mlir --target=cpu --dump-dir=/dev/null/none -o %t.o 2>&1 | FileCheck %s --check-prefix=DUMP
// RUN: not lacis-compile %t/good.mlir --emit=x --target=cpu 2>&1 | FileCheck %s --check-prefix=USAGE

// TARGET: error: no target 'tpu'; targets here are 'cpu,cuda'
// ARCH: error: target 'cuda' names no architecture from sm_75 up
// CHIP: error: no processor 'sm_9999'
// CPUARCH: error: target 'cpu' takes no architecture, got 'znver4'; choose a processor by the option 'cpu'
// CPU: error: no processor 'pentium9'
// FEATURE: error: no processor feature '+warp'
// STAGE: error: no stage 'ptx' for target 'cpu'; stages here are 'lacis', 'loops', 'tiles', 'buffers', 'target', 'llvm', 'asm'
// MARK: error: no stage 'lunch', which the module's 'lacis.stage' names
// SYNTAX: syntax.mlir:1:{{[0-9]+}}: error:
// RECORD: error: artifact.args[0] has an unknown key 'colour'
// ENTRY: error: 'lacis.artifact' launches 'other', which is not defined
// ARGUMENTS: error: 'f' takes 1 arguments; 'lacis.artifact' lists 2
// BLOCK: error: a GPU kernel needs 'lacis.block', the three extents of its blocks
// INVALID: error: invalid LLVM IR: Instruction does not dominate all uses
// CALL: error: the kernel calls 'puts', which no library of Lacis has
// FATAL: error: the compiler failed: PTX version 6.0 does not support target 'sm_90a'
// FATAL: note: repeat it with: lacis-compile {{.*}}good.mlir --target=cuda:sm_90a --features='+ptx60'
// LEVEL: lacis-compile: --opt-level: 0 to 3, got 7
// DUMP: warning: cannot write '/dev/null/none
// USAGE: lacis-compile: --emit: no kind 'x'

//--- good.mlir
module attributes {lacis.stage = "target", lacis.artifact = {args = [], output = {dtype = "f32", shape = []},
    launches = [{entry = "f", units = #lacis.size<1>}], index_bits = 32}} {
  func.func @f(%lo: i64, %hi: i64) { return }
}
//--- stage.mlir
module attributes {lacis.stage = "lunch"} {}
//--- syntax.mlir
func.func @f( {
//--- record.mlir
module attributes {lacis.stage = "target", lacis.artifact = {
    args = [{kind = "operand", operand = 1, colour = "red"}], output = {dtype = "f32", shape = []},
    launches = [{entry = "f", units = #lacis.size<1>}], index_bits = 32}} {}
//--- entry.mlir
module attributes {lacis.stage = "target", lacis.artifact = {args = [], output = {dtype = "f32", shape = []},
    launches = [{entry = "other", units = #lacis.size<1>}], index_bits = 32}} {
  func.func @f(%lo: i64, %hi: i64) { return }
}
//--- arguments.mlir
module attributes {lacis.stage = "target", lacis.artifact = {args = [], output = {dtype = "f32", shape = []},
    launches = [{entry = "f", units = #lacis.size<1>}], index_bits = 32}} {
  func.func @f(%lo: i64) { return }
}
//--- block.mlir
module attributes {lacis.stage = "target", lacis.artifact = {args = [], output = {dtype = "f32", shape = []},
    launches = [{entry = "f", grid = [#lacis.size<1>, #lacis.size<1>, #lacis.size<1>], block = [1, 1, 1]}], index_bits = 32}} {
  func.func @f() attributes {lacis.gpu_kernel, lacis.block = array<i64: 1>} { return }
}
//--- order.ll
; ModuleID = 'x'
define void @f(i64 %lo, i64 %hi) {
  %a = add i64 %b, 1
  %b = add i64 %lo, 1
  ret void
}
!lacis.artifact = !{!0}
!0 = !{!"{\22format_version\22:5,\22target\22:\22cpu\22,\22kind\22:\22none\22,\22args\22:[],\22output\22:{\22dtype\22:\22f32\22,\22shape\22:[]},\22launches\22:[{\22entry\22:\22f\22,\22units\22:1}],\22index_bits\22:32}"}
//--- call.mlir
module attributes {lacis.stage = "target", lacis.artifact = {args = [], output = {dtype = "f32", shape = []},
    launches = [{entry = "f", units = #lacis.size<1>}], index_bits = 32}} {
  llvm.func @puts(!llvm.ptr) -> i32
  func.func @f(%lo: i64, %hi: i64) {
    %p = llvm.inttoptr %lo : i64 to !llvm.ptr
    %r = llvm.call @puts(%p) : (!llvm.ptr) -> i32
    return
  }
}
