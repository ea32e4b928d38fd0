// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-map-to-grid | FileCheck %s

// The lanes of a warp take what those before them carry on, in five steps; the first takes the start.
// CHECK-LABEL: func.func @segments_0(
// CHECK-SAME:    %[[START:[^:]*]]: f32)
// CHECK:         %[[OWN:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK:         %[[ON:.*]] = arith.cmpf
// CHECK:         %[[BEFORE:.*]] = nvvm.shfl.sync up %{{.*}}, %[[OWN]], %c1_i32
// CHECK:         %[[BOTH:.*]] = arith.addf %[[BEFORE]], %[[OWN]]
// CHECK:         %[[ONE:.*]] = arith.select %{{.*}}, %[[BOTH]], %[[OWN]]
// CHECK-COUNT-8: nvvm.shfl.sync up
// CHECK:         %[[LAST:.*]] = nvvm.shfl.sync up
// CHECK:         %[[CARRIED:.*]] = arith.select %{{.*}}, %{{.*}}, %[[START]]
// CHECK:         arith.addf %[[CARRIED]], %[[OWN]]
#one = #lacis.size<1>
#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @segments(%x: !llvm.ptr, %y: !llvm.ptr, %start: f32) attributes {lacis.kernel} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %last = scf.for %lane = %c0 to %c32 step %c1 iter_args(%carried = %start) -> (f32) : i32 {
      %from = llvm.getelementptr %x[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      %own = llvm.load %from : !llvm.ptr -> f32
      %continues = arith.cmpf ogt, %own, %zero : f32
      %sum = arith.addf %carried, %own : f32
      %next = arith.select %continues, %sum, %own : f32
      %to = llvm.getelementptr %y[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, f32
      llvm.store %next, %to : f32, !llvm.ptr
      scf.yield %next : f32
    } {lacis.bind = "lane", lacis.name = "k", lacis.scan, lacis.size = #lanes}
    return
  }
}

// -----

#lanes = #lacis.size<32>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @sum(%x: f32, %y: !llvm.ptr) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    // expected-error @+1 {{bind: this loop carries no segmented sum that the lanes of a warp can share}}
    %sum = scf.for %lane = %c0 to %c32 step %c1 iter_args(%carried = %x) -> (f32) : i32 {
      %next = arith.addf %carried, %x : f32
      scf.yield %next : f32
    } {lacis.bind = "lane", lacis.name = "k", lacis.scan, lacis.size = #lanes}
    llvm.store %sum, %y : f32, !llvm.ptr
    return
  }
}
