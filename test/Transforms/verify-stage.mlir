// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: lacis-opt %t/lacis.mlir -split-input-file -verify-diagnostics -lacis-verify-stage=stage=lacis
// RUN: lacis-opt %t/loops.mlir -split-input-file -verify-diagnostics -lacis-verify-stage=stage=loops
// RUN: lacis-opt %t/buffers.mlir -split-input-file -verify-diagnostics -lacis-verify-stage=stage=buffers
// RUN: lacis-opt %t/target.mlir -verify-diagnostics -lacis-verify-stage=stage=target
// RUN: not lacis-opt %t/claims.mlir -lacis-to-buffers 2>&1 | FileCheck %t/claims.mlir
// RUN: lacis-opt %t/none.mlir -verify-diagnostics -lacis-verify-stage=stage=sparse

// What each stage promises.

//--- lacis.mlir
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @drops(%n: index) -> tensor<?x?xf32, #csr> {
  // expected-error @+1 {{'tensor.empty' would change or drop a format}}
  %e = tensor.empty(%n, %n) : tensor<?x?xf32, #csr>
  return %e : tensor<?x?xf32, #csr>
}

// -----

#panels = #lacis.format<(b) -> (b floordiv 4 : dense, b mod 4 : dense)>
func.func @too_late(%n: index) {
  // expected-error @+1 {{'lacis.workspace' belongs to a later stage than the algebra}}
  %w = lacis.workspace(%n) : tensor<?xf32, #panels>
  return
}

//--- loops.mlir
func.func @algebra(%zero: f32, %x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'linalg.fill' has not become a loop}}
  %y = linalg.fill ins(%zero : f32) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func @memory(%x: !llvm.ptr) -> f32 {
  // expected-error @+1 {{'llvm.load' belongs to a later stage than the loops}}
  %y = llvm.load %x : !llvm.ptr -> f32
  return %y : f32
}

// -----

func.func @roles() {
  // expected-error @+1 {{'lacis.ring' belongs to a later stage than the loops}}
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  return
}

// -----

// expected-error @+1 {{a kernel is one block here, whose loops and branches have regions}}
func.func @blocks() {
  cf.br ^end
^end:
  return
}

// -----

func.func @makes(%n: index) {
  // expected-error @+1 {{'tensor.empty' makes a tensor; tensors are arguments here, or made by the dialect}}
  %x = tensor.empty(%n) : tensor<?xf32>
  return
}

//--- buffers.mlir
func.func @levels(%n: index) {
  // expected-error @+1 {{'lacis.lanes' is left after its stage}}
  %first = lacis.lanes %n : vector<8xi1>
  return
}

// -----

func.func @tensors(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{a tensor is left after the levels were lowered}}
  return %x : tensor<?xf32>
}

//--- target.mlir
func.func @tiles() {
  // expected-error @+1 {{'lacis.ring': this target has no lowering of tiles}}
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  return
}

//--- none.mlir
// expected-error @+1 {{no stage named 'sparse'; there are 'lacis', 'loops', 'tiles', 'buffers', 'target'}}
module {}

//--- claims.mlir
// What a text says of itself is looked at.
// CHECK: error: 'linalg.fill' has not become a loop
module attributes {lacis.stage = "tiles"} {
  func.func @algebra(%zero: f32, %x: tensor<?xf32>) -> tensor<?xf32> {
    %y = linalg.fill ins(%zero : f32) outs(%x : tensor<?xf32>) -> tensor<?xf32>
    return %y : tensor<?xf32>
  }
}
