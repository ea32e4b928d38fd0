// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: lacis-opt %t/grid.mlir -split-input-file -verify-diagnostics -lacis-map-to-grid
// RUN: lacis-opt %t/none.mlir -verify-diagnostics -lacis-map-to-grid

// Bound loops that no grid of threads runs.

//--- none.mlir
// expected-error @below {{a launch is made of one kernel at the buffers stage}}
module {}

//--- grid.mlir
#one = #lacis.size<1>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @k() attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      // expected-error @below {{bind: two loops are bound to 'warp', which has one size; fuse them}}
      scf.for %j = %c0 to %c4 step %c1 : i32 {
      } {lacis.bind = "warp", lacis.size = #one}
    } {lacis.bind = "warp", lacis.size = #one}
    return
  }
}

// -----

#one = #lacis.size<1>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @k(%n: i32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    // expected-error @below {{bind: a loop bound to 'thread.x' needs a constant size up to 1024}}
    scf.for %i = %c0 to %n step %c1 : i32 {
    } {lacis.bind = "thread.x", lacis.size = #one}
    return
  }
}

// -----

#one = #lacis.size<1>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @k() attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    // expected-error @below {{bind: a nest has loops on 'thread.x', or on 'warp' and 'lane', not both}}
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      scf.for %j = %c0 to %c4 step %c1 : i32 {
      } {lacis.bind = "warp", lacis.size = #one}
    } {lacis.bind = "thread.x", lacis.size = #one}
    return
  }
}

// -----

#one = #lacis.size<1>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @k(%x: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      // expected-error @below {{bind: the rounds of this loop are not added up by one operation, so units cannot share them}}
      %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%acc = %x) -> (f32) : i32 {
        %next = arith.divf %acc, %x : f32
        scf.yield %next : f32
      } {lacis.bind = "warp", lacis.size = #one}
    } {lacis.bind = "block.x", lacis.size = #one}
    return
  }
}

// -----

#one = #lacis.size<1>
module attributes {lacis.stage = "buffers", lacis.artifact = {args = [], index_bits = 32 : i64,
    output = {dtype = "f32", shape = []}, workspace = []}} {
  func.func @k(%x: f32) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %all = scf.for %i = %c0 to %c4 step %c1 iter_args(%outer = %x) -> (f32) : i32 {
      // expected-error @below {{bind: the sum of this loop is carried on, so warps cannot share it}}
      %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%acc = %outer) -> (f32) : i32 {
        %next = arith.addf %acc, %x : f32
        scf.yield %next : f32
      } {lacis.bind = "warp", lacis.reduce = #lacis.reduction<add>, lacis.size = #one}
      scf.yield %sum : f32
    }
    return
  }
}
