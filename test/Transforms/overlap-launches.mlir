// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-overlap-launches | FileCheck %s

// A kernel waits before all else, which its launch says; other functions are called by it.
// CHECK:       launches = [{entry = "first", waits = true}, {entry = "second", waits = true}]
// CHECK-LABEL: func.func @first(
// CHECK-NEXT:    nvvm.griddepcontrol wait
// CHECK-NEXT:    llvm.load
// CHECK-LABEL: func.func @second(
// CHECK-NEXT:    nvvm.griddepcontrol wait
// CHECK-LABEL: func.func @called(
// CHECK-NOT:     griddepcontrol
module attributes {lacis.artifact = {launches = [{entry = "first"}, {entry = "second"}]}} {
  func.func @first(%p: !llvm.ptr) attributes {lacis.gpu_kernel} {
    %v = llvm.load %p : !llvm.ptr -> f32
    func.call @called(%v) : (f32) -> ()
    return
  }
  func.func @second() attributes {lacis.gpu_kernel} {
    return
  }
  func.func @called(%v: f32) {
    return
  }
}
