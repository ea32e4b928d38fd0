// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-tiles-hopper | FileCheck %s
// RUN: lacis-opt %s -lacis-lower-tiles-ampere | FileCheck %s --check-prefix=WARPS
// RUN: lacis-opt %s -lacis-lower-tiles-plain | FileCheck %s --check-prefix=PLAIN

// A part of a sum is added to another, and kept: two neighbours at once. Nobody asks for a stage of the ring.
// CHECK-LABEL: func.func @add(
// CHECK-NOT:     lacis.ring
// CHECK:         %[[BASE:.*]] = llvm.getelementptr %arg0[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<2xf32>
// CHECK:         arith.addf
// CHECK:         %[[TO:.*]] = llvm.getelementptr %arg0[%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         llvm.getelementptr %[[TO]][0]
// CHECK-NEXT:    llvm.store {{.*}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr
// CHECK:         llvm.getelementptr %[[TO]][512]
// WARPS-LABEL: func.func @add(
// WARPS:         arith.addf
// WARPS:         llvm.store {{.*}} : vector<2xf32>, !llvm.ptr
// PLAIN-LABEL: func.func @add(
// PLAIN:         arith.addf
// PLAIN:         llvm.store {{.*}} : f32, !llvm.ptr
!ring = !lacis.ring<2, <64x64xbf16>>
!acc = !lacis.acc<64x64xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "add", shared = 0 : i64}]}} {
  func.func @add(%kept: !llvm.ptr) attributes {lacis.gpu_kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %ring = lacis.ring : !ring
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : i32) {
      %first = lacis.load_acc %kept at %c0 : !llvm.ptr, i32 to !acc
      %both = lacis.load_acc %kept at %c1 : !llvm.ptr, i32 onto %first : !acc to !acc
      lacis.store_acc %both to %kept at %c2 : !acc to !llvm.ptr, i32
      lacis.yield
    }
    return
  }
}
