// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-map-to-grid | FileCheck %s

// Each lane of a warp adds up its part from zero; five exchanges bring the parts together, then the start is added.
// CHECK-LABEL: func.func @sum_0(
// CHECK:         %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         %[[PART:.*]] = arith.addf %[[ZERO]], %{{.*}} : f32
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK:         arith.addf
// CHECK:         llvm.store
#one = #lacis.size<1>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @sum(%x: !llvm.ptr, %y: !llvm.ptr, %start: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c32 = arith.constant 32 : i32
    scf.for %row = %c0 to %c2 step %c1 : i32 {
      %sum = scf.for %lane = %c0 to %c32 step %c1 iter_args(%acc = %start) -> (f32) : i32 {
        %at = llvm.getelementptr %x[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        %v = llvm.load %at : !llvm.ptr -> f32
        %next = arith.addf %acc, %v : f32
        scf.yield %next : f32
      } {lacis.bind = "lane", lacis.name = "k", lacis.reduce = #lacis.reduction<add>, lacis.size = #lanes}
      %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %sum, %to : f32, !llvm.ptr
    } {lacis.bind = "block.x", lacis.name = "i", lacis.size = #one}
    return
  }
}

// -----

// Two loops share the warp: eight neighbouring lanes sum a row, and exchange with one another only.
// CHECK-LABEL: func.func @rows_0(
// CHECK-DAG:     %[[EIGHT:.*]] = arith.constant 8 : i32
// CHECK:         %[[LANE:.*]] = arith.remui
// CHECK:         %[[ROW:.*]] = arith.divui %[[LANE]], %[[EIGHT]]
// CHECK:         %[[COLUMN:.*]] = arith.remui %[[LANE]], %{{.*}}
// CHECK:         %[[FIRST:.*]] = arith.andi %[[LANE]], %{{.*}}
// CHECK:         %[[MEMBERS:.*]] = arith.shli %{{.*}}, %[[FIRST]]
// CHECK-COUNT-3: nvvm.shfl.sync bfly %[[MEMBERS]]
// CHECK-NOT:     nvvm.shfl.sync
#four = #lacis.size<4>
#eight = #lacis.size<8>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @rows(%x: !llvm.ptr, %y: !llvm.ptr, %start: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    scf.for %row = %c0 to %c4 step %c1 : i32 {
      %from = llvm.getelementptr %x[%row] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<8 x f32>
      %sum = scf.for %lane = %c0 to %c8 step %c1 iter_args(%acc = %start) -> (f32) : i32 {
        %at = llvm.getelementptr %from[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        %v = llvm.load %at : !llvm.ptr -> f32
        %next = arith.addf %acc, %v : f32
        scf.yield %next : f32
      } {lacis.bind = "lane", lacis.name = "k", lacis.reduce = #lacis.reduction<add>, lacis.size = #eight}
      %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %sum, %to : f32, !llvm.ptr
    } {lacis.bind = "lane", lacis.name = "i", lacis.size = #four}
    return
  }
}

// -----

// Vectors of neighbours stay on neighbouring lanes, so those that share their sum are eight apart; two exchanges an element.
// CHECK-LABEL: func.func @vectors_0(
// CHECK:         %[[LANE:.*]] = arith.remui
// CHECK:         %[[FIRST:.*]] = arith.andi %[[LANE]], %{{.*}}
// CHECK:         %[[APART:.*]] = arith.constant 16843009 : i32
// CHECK:         %[[MEMBERS:.*]] = arith.shli %[[APART]], %[[FIRST]]
// CHECK-COUNT-4: nvvm.shfl.sync bfly %[[MEMBERS]]
// CHECK-NOT:     nvvm.shfl.sync
#four = #lacis.size<4>
#eight = #lacis.size<8>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @vectors(%x: !llvm.ptr, %y: !llvm.ptr, %start: vector<2xf32>) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i32
    scf.for %column = %c0 to %c8 step %c1 : i32 {
      %sum = scf.for %entry = %c0 to %c4 step %c1 iter_args(%acc = %start) -> (vector<2xf32>) : i32 {
        %at = llvm.getelementptr %x[%entry] : (!llvm.ptr, i32) -> !llvm.ptr, vector<2xf32>
        %v = llvm.load %at : !llvm.ptr -> vector<2xf32>
        %next = arith.addf %acc, %v : vector<2xf32>
        scf.yield %next : vector<2xf32>
      } {lacis.bind = "lane", lacis.name = "j", lacis.reduce = #lacis.reduction<add>, lacis.size = #four}
      %to = llvm.getelementptr %y[%column] : (!llvm.ptr, i32) -> !llvm.ptr, vector<2xf32>
      llvm.store %sum, %to : vector<2xf32>, !llvm.ptr
    } {lacis.bind = "lane", lacis.name = "k", lacis.size = #eight}
    return
  }
}
// -----

#four = #lacis.size<4>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @few(%y: !llvm.ptr, %v: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    // expected-error @below {{bind: the loops bound to 'lane' run 4 times together; a warp has exactly 32 lanes}}
    scf.for %row = %c0 to %c4 step %c1 : i32 {
      %to = llvm.getelementptr %y[%row] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %v, %to : f32, !llvm.ptr
    } {lacis.bind = "lane", lacis.name = "i", lacis.size = #four}
    return
  }
}
