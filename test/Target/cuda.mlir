// SPDX-License-Identifier: Apache-2.0
// A launched function becomes an entry with its number of threads; pointers that are only read load through the
// read-only cache, and a loop keeps its unroll mark.
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=llvm -o - | FileCheck %s --check-prefix=LLVM
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s --check-prefixes=PTX,SM90
// RUN: lacis-compile %s --target=cuda:sm_80 --emit=ptx -o - | FileCheck %s --check-prefixes=PTX,SM80
// RUN: lacis-compile %s --target=cuda:sm_103 --emit=ptx -o - | FileCheck %s --check-prefixes=SM103,PTX
// RUN: lacis-compile %s --target=cuda:sm_110 --emit=ptx -o - | FileCheck %s --check-prefixes=SM110,PTX
// RUN: lacis-compile %s --target=cuda:sm_121 --emit=ptx -o - | FileCheck %s --check-prefixes=SM121,PTX

module attributes {lacis.stage = "target", lacis.artifact = {
  args = [{kind = "operand", operand = 1}, {kind = "output"}, {kind = "dim", operand = 1, dim = 0}],
  output = {dtype = "f32", shape = [#lacis.size<arg 2>]},
  launches = [{entry = "sums", grid = [#lacis.size<ceildiv(arg 2, 128)>, #lacis.size<1>, #lacis.size<1>], block = [128, 1, 1], shared = 0}],
  index_bits = 32}} {
  // LLVM-LABEL: define ptx_kernel void @sums(
  // LLVM:       llvm.nvvm.shfl.sync
  // LLVM:       !"llvm.loop.unroll.disable"
  // SM103:      .version 8.8
  // SM110:      .version 9.0
  // SM121:      .version 8.8
  // SM90:       .target sm_90a
  // SM80:       .target sm_80
  // PTX:        .visible .entry sums(
  // PTX:        .maxntid 128, 1, 1
  // PTX:        ld.global.nc.b32
  // PTX:        shfl.sync.bfly
  // PTX:        bar.sync 0
  func.func @sums(%x: !llvm.ptr {llvm.noalias, llvm.readonly}, %y: !llvm.ptr {llvm.noalias}, %n: i64)
      attributes {lacis.gpu_kernel, lacis.block = array<i64: 128, 1, 1>} {
    %t = gpu.thread_id x
    %first = arith.index_cast %t : index to i64
    %zero = arith.constant 0.0 : f32
    %step = arith.constant 128 : i64
    %sum = scf.for %i = %first to %n step %step iter_args(%acc = %zero) -> f32 : i64 {
      %p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %s = arith.addf %acc, %v : f32
      scf.yield %s : f32
    } {llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}
    %one = arith.constant 1 : i32
    %warp = arith.constant 32 : i32
    %other, %valid = gpu.shuffle xor %sum, %one, %warp : f32
    %total = arith.addf %sum, %other : f32
    gpu.barrier
    %q = llvm.getelementptr %y[%first] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %total, %q : f32, !llvm.ptr
    return
  }
}
