// SPDX-License-Identifier: Apache-2.0
// RUN: split-file %s %t
// RUN: lacis-opt %t/map.mlir -split-input-file -verify-diagnostics -lacis-map-to-grid
// RUN: lacis-opt %t/map.mlir -split-input-file -verify-diagnostics -lacis-map-to-ranges
// RUN: lacis-opt %t/check.mlir -verify-diagnostics -lacis-check-accesses

// Kernels that do not say what a launch needs to know.

//--- map.mlir
module attributes {lacis.stage = "buffers", lacis.artifact = {args = []}} {
  func.func @k() attributes {lacis.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // expected-error @below {{bind: the loop is bound to "warp" and has no 'lacis.size'}}
    scf.for %i = %c0 to %c1 step %c1 : i32 {
    } {lacis.bind = "warp"}
    return
  }
}

// -----

module attributes {lacis.stage = "buffers", lacis.artifact = {args = []}} {
  // expected-error @below {{a launch is made of a kernel with a body}}
  func.func private @k()
}

//--- check.mlir
module attributes {lacis.artifact = {args = []}} {
  // expected-error @below {{checked: 'lacis.artifact' lists 0 arguments; the kernel has 1}}
  func.func @unlisted(%x: !llvm.ptr) attributes {lacis.kernel, lacis.checked} {
    return
  }
}
