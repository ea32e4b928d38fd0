// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -verify-diagnostics -lacis-map-to-grid

// Each of two arrays fits into the shared memory of a block alone.
#one = #lacis.size<1>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<40000 x i8>
  llvm.mlir.global internal @sums() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<16000 x i8>
  // expected-error @below {{bind: staged tiles and sums of warps take 56000 bytes of a block's shared memory together, more than 49152; split the staged loops smaller, or bind fewer warps}}
  func.func @k(%x: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
    %sums = llvm.mlir.addressof @sums : !llvm.ptr<3>
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      llvm.store %x, %tile : f32, !llvm.ptr<3>
      llvm.store %x, %sums : f32, !llvm.ptr<3>
    } {lacis.bind = "thread.x", lacis.size = #one}
    return
  }
}
