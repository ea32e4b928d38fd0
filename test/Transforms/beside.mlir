// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-map-to-grid | FileCheck %s

// A nest that joins the launch of the next has the first blocks, by a sum of sizes that is known before; each block has one
// nest.
// CHECK:       launches = [{beside = [{{.*}}], block = [4, 1, 1], entry = "rows_1", grid = [
// CHECK-NOT:   func.func @rows_0
// CHECK-LABEL: func.func @rows_1(
// CHECK-SAME:    %[[LISTED:[^:]*]]: i32, %{{[^:]*}}: i32)
// CHECK:         %[[UNITS:.*]] = arith.muli %{{.*}}, %[[LISTED]] : i32
// CHECK:         %[[END:.*]] = arith.addi %{{.*}}, %[[UNITS]] : i32
// CHECK:         %[[UNIT:.*]] = arith.subi %{{.*}} : i32
// CHECK:         %[[OURS:.*]] = arith.cmpi ult, %[[UNIT]], %[[UNITS]] : i32
// CHECK:         scf.if %[[OURS]]
// CHECK:           llvm.store
// CHECK:         }
// CHECK:         %[[OWN:.*]] = arith.subi %{{.*}}, %[[END]] : i32
// CHECK:         %[[REST:.*]] = arith.cmpi ult, %[[OWN]]
// CHECK:         scf.if %[[REST]]
// CHECK:           llvm.store
#one = #lacis.size<1>
#four = #lacis.size<4>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @rows(%y: !llvm.ptr, %v: f32, %listed: i32, %all: i32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    // The listed rows.
    scf.for %row = %c0 to %listed step %c1 : i32 {
      scf.for %warp = %c0 to %c4 step %c1 : i32 {
        %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %v, %to : f32, !llvm.ptr
      } {lacis.bind = "warp", lacis.beside, lacis.name = "w", lacis.size = #four}
    } {lacis.bind = "block.x", lacis.beside, lacis.name = "long.i", lacis.size = #one}
    scf.for %row = %c0 to %all step %c1 : i32 {
      scf.for %warp = %c0 to %c4 step %c1 : i32 {
        %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %v, %to : f32, !llvm.ptr
      } {lacis.bind = "warp", lacis.name = "w", lacis.size = #four}
    } {lacis.bind = "block.x", lacis.name = "i", lacis.size = #one}
    return
  }
}

// -----

#one = #lacis.size<1>
#four = #lacis.size<4>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @rows(%y: !llvm.ptr, %v: f32, %listed: i32, %all: i32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    // expected-error @below {{bind: units of a nest that shares a launch are blocks along x}}
    scf.for %row = %c0 to %listed step %c1 : i32 {
      scf.for %warp = %c0 to %c4 step %c1 : i32 {
        %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %v, %to : f32, !llvm.ptr
      } {lacis.bind = "warp", lacis.beside, lacis.name = "w", lacis.size = #four}
    } {lacis.bind = "block.y", lacis.beside, lacis.name = "long.i", lacis.size = #one}
    scf.for %row = %c0 to %all step %c1 : i32 {
      scf.for %warp = %c0 to %c4 step %c1 : i32 {
        %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %v, %to : f32, !llvm.ptr
      } {lacis.bind = "warp", lacis.name = "w", lacis.size = #four}
    } {lacis.bind = "block.x", lacis.name = "i", lacis.size = #one}
    return
  }
}

// -----

#one = #lacis.size<1>
#four = #lacis.size<4>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  // expected-error @below {{bind: nests that share a launch have blocks of}}
  func.func @rows(%y: !llvm.ptr, %v: f32, %listed: i32, %all: i32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    // The listed rows.
    scf.for %row = %c0 to %listed step %c1 : i32 {
      scf.for %warp = %c0 to %c1 step %c1 : i32 {
        %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %v, %to : f32, !llvm.ptr
      } {lacis.bind = "warp", lacis.beside, lacis.name = "w", lacis.size = #four}
    } {lacis.bind = "block.x", lacis.beside, lacis.name = "long.i", lacis.size = #one}
    scf.for %row = %c0 to %all step %c1 : i32 {
      scf.for %warp = %c0 to %c4 step %c1 : i32 {
        %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %v, %to : f32, !llvm.ptr
      } {lacis.bind = "warp", lacis.name = "w", lacis.size = #four}
    } {lacis.bind = "block.x", lacis.name = "i", lacis.size = #one}
    return
  }
}
