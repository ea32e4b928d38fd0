// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-map-to-grid | FileCheck %s

// Four warps leave their sums in shared memory; the first adds them in their order and writes.
// CHECK:       llvm.mlir.global internal @sum_0_shared0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<512 x i8>
// CHECK-LABEL: func.func @sum_0(
// CHECK:         %[[PART:.*]] = arith.addf
// CHECK:         llvm.store %[[PART]], %{{.*}} : f32, !llvm.ptr<3>
// CHECK:         nvvm.barrier
// CHECK:         scf.if
// CHECK-COUNT-4:   llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK:           llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr
#one = #lacis.size<1>
#four = #lacis.size<4>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @sum(%x: !llvm.ptr, %y: !llvm.ptr, %start: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    scf.for %row = %c0 to %c2 step %c1 : i32 {
      scf.for %lane = %c0 to %c32 step %c1 : i32 {
        %sum = scf.for %warp = %c0 to %c4 step %c1 iter_args(%acc = %start) -> (f32) : i32 {
          %at = llvm.getelementptr %x[%warp] : (!llvm.ptr, i32) -> !llvm.ptr, f32
          %v = llvm.load %at : !llvm.ptr -> f32
          %next = arith.addf %acc, %v : f32
          scf.yield %next : f32
        } {lacis.bind = "warp", lacis.name = "k", lacis.reduce = #lacis.reduction<add>, lacis.size = #four}
        %to = llvm.getelementptr %y[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %sum, %to : f32, !llvm.ptr
      } {lacis.bind = "lane", lacis.name = "l", lacis.size = #lanes}
    } {lacis.bind = "block.x", lacis.name = "i", lacis.size = #one}
    return
  }
}

// -----

// Sums of vectors take as many bytes each as they have.
// CHECK:       llvm.mlir.global internal @vectors_0_shared0() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<2048 x i8>
// CHECK-LABEL: func.func @vectors_0(
// CHECK:         llvm.getelementptr %{{.*}} : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<16 x i8>
// CHECK:         llvm.store %{{.*}}, %{{.*}} : vector<4xf32>, !llvm.ptr<3>
// CHECK:         nvvm.barrier
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xf32>
#four = #lacis.size<4>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @vectors(%x: !llvm.ptr, %y: !llvm.ptr, %start: vector<4xf32>) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    scf.for %lane = %c0 to %c32 step %c1 : i32 {
      %sum = scf.for %warp = %c0 to %c4 step %c1 iter_args(%acc = %start) -> (vector<4xf32>) : i32 {
        %at = llvm.getelementptr %x[%warp] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xf32>
        %v = llvm.load %at : !llvm.ptr -> vector<4xf32>
        %next = arith.addf %acc, %v : vector<4xf32>
        scf.yield %next : vector<4xf32>
      } {lacis.bind = "warp", lacis.name = "k", lacis.reduce = #lacis.reduction<add>, lacis.size = #four}
      %to = llvm.getelementptr %y[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xf32>
      llvm.store %sum, %to : vector<4xf32>, !llvm.ptr
    } {lacis.bind = "lane", lacis.name = "l", lacis.size = #lanes}
    return
  }
}

// -----

// Four stores need a sum each: with two warps, each adds two of them up, in the order of the warps, and stores these.
// CHECK-LABEL: func.func @shared_0(
// CHECK:         nvvm.barrier
// CHECK:         scf.if
// CHECK-COUNT-4:   llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-COUNT-2:   llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr{{$}}
// CHECK-NOT:       llvm.store
// CHECK:         scf.if
// CHECK-COUNT-4:   llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-COUNT-2:   llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr{{$}}
// CHECK-NOT:     scf.if
#two = #lacis.size<2>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @shared(%x: !llvm.ptr, %y: !llvm.ptr, %start: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c32 = arith.constant 32 : i32
    scf.for %lane = %c0 to %c32 step %c1 : i32 {
      %s:4 = scf.for %warp = %c0 to %c2 step %c1 iter_args(%a = %start, %b = %start, %c = %start, %d = %start) -> (f32, f32, f32, f32) : i32 {
        %at = llvm.getelementptr %x[%warp] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        %v = llvm.load %at : !llvm.ptr -> f32
        %a1 = arith.addf %a, %v : f32
        %b1 = arith.addf %b, %v : f32
        %e1 = arith.addf %c, %v : f32
        %d1 = arith.addf %d, %v : f32
        scf.yield %a1, %b1, %e1, %d1 : f32, f32, f32, f32
      } {lacis.bind = "warp", lacis.name = "k", lacis.reduce = #lacis.reduction<add>, lacis.size = #two}
      %to = llvm.getelementptr %y[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, vector<4xf32>
      llvm.store %s#0, %to : f32, !llvm.ptr
      %to1 = llvm.getelementptr %to[1] : (!llvm.ptr) -> !llvm.ptr, f32
      llvm.store %s#1, %to1 : f32, !llvm.ptr
      %to2 = llvm.getelementptr %to[2] : (!llvm.ptr) -> !llvm.ptr, f32
      llvm.store %s#2, %to2 : f32, !llvm.ptr
      %to3 = llvm.getelementptr %to[3] : (!llvm.ptr) -> !llvm.ptr, f32
      llvm.store %s#3, %to3 : f32, !llvm.ptr
    } {lacis.bind = "lane", lacis.name = "l", lacis.size = #lanes}
    return
  }
}
