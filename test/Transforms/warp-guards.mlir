// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-map-to-grid | FileCheck %s

// Every lane comes to the barrier, those past the end too: they leave nothing to the sum, and store nothing.
// CHECK-LABEL: func.func @guarded_0(
// CHECK:         %[[INSIDE:.*]] = arith.cmpi slt
// CHECK:         %[[FOUND:.*]] = scf.if %[[INSIDE]] -> (f32)
// CHECK-NEXT:      llvm.load
// CHECK:         %[[OWN:.*]] = scf.if %[[INSIDE]] -> (f32)
// CHECK:           arith.mulf %{{.*}}, %[[FOUND]]
// CHECK:         llvm.store %[[OWN]], %{{.*}} : f32, !llvm.ptr<3>
// CHECK-NEXT:    nvvm.barrier
// CHECK:         scf.if %[[INSIDE]] {
// CHECK:           llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr
#four = #lacis.size<4>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @guarded(%x: !llvm.ptr, %y: !llvm.ptr, %start: f32, %n: i32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    scf.for %lane = %c0 to %c32 step %c1 : i32 {
      %inside = arith.cmpi slt, %lane, %n : i32
      scf.if %inside {
        %factor = llvm.load %x : !llvm.ptr -> f32
        %sum = scf.for %warp = %c0 to %c4 step %c1 iter_args(%acc = %start) -> (f32) : i32 {
          %at = llvm.getelementptr %x[%warp] : (!llvm.ptr, i32) -> !llvm.ptr, f32
          %v = llvm.load %at : !llvm.ptr -> f32
          %scaled = arith.mulf %v, %factor : f32
          %next = arith.addf %acc, %scaled : f32
          scf.yield %next : f32
        } {lacis.bind = "warp", lacis.name = "k", lacis.reduce = #lacis.reduction<add>, lacis.size = #four}
        %to = llvm.getelementptr %y[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %sum, %to : f32, !llvm.ptr
      }
    } {lacis.bind = "lane", lacis.name = "l", lacis.size = #lanes}
    return
  }
}

// -----

// A block that comes to the sum again waits until the first warp has read what the others left.
// CHECK-LABEL: func.func @again_0(
// CHECK:         scf.for
// CHECK:           nvvm.barrier
// CHECK:           scf.if
// CHECK:             llvm.store %{{.*}}, %{{.*}} : f32, !llvm.ptr{{$}}
// CHECK:           nvvm.barrier
#four = #lacis.size<4>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @again(%x: !llvm.ptr, %y: !llvm.ptr, %start: f32, %n: i32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    scf.for %row = %c0 to %n step %c1 : i32 {
      %sum = scf.for %warp = %c0 to %c4 step %c1 iter_args(%acc = %start) -> (f32) : i32 {
        %at = llvm.getelementptr %x[%warp] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        %v = llvm.load %at : !llvm.ptr -> f32
        %next = arith.addf %acc, %v : f32
        scf.yield %next : f32
      } {lacis.bind = "warp", lacis.name = "k", lacis.reduce = #lacis.reduction<add>, lacis.size = #four}
      %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %sum, %to : f32, !llvm.ptr
    }
    return
  }
}

// -----

#four = #lacis.size<4>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @rounds(%x: !llvm.ptr, %y: !llvm.ptr, %start: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c32 = arith.constant 32 : i32
    scf.for %lane = %c0 to %c32 step %c1 : i32 {
      scf.for %row = %c0 to %lane step %c1 : i32 {
        // expected-error @below {{bind: warps share the sum of this loop, but how often threads come to it differs between them; bind a loop outside of those whose bounds or guards depend on 'lane' or 'thread'}}
        %sum = scf.for %warp = %c0 to %c4 step %c1 iter_args(%acc = %start) -> (f32) : i32 {
          %next = arith.addf %acc, %start : f32
          scf.yield %next : f32
        } {lacis.bind = "warp", lacis.name = "k", lacis.reduce = #lacis.reduction<add>, lacis.size = #four}
        %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %sum, %to : f32, !llvm.ptr
      }
    } {lacis.bind = "lane", lacis.name = "l", lacis.size = #lanes}
    return
  }
}
