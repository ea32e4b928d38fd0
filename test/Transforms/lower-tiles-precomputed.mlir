// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-tiles-hopper | FileCheck %s
// RUN: lacis-opt %s -lacis-lower-tiles-ampere | FileCheck %s --check-prefix=WARPS
// RUN: lacis-opt %s -lacis-lower-tiles-plain | FileCheck %s --check-prefix=PLAIN

// A thread loads two neighbours of its rows at once, before the first product: of tile 3, which is 64 x 64.
// CHECK-LABEL: func @begin(
// CHECK:         %[[SIZE:.*]] = arith.constant 4096 : i64
// CHECK:         %[[FIRST:.*]] = arith.muli %{{.*}}, %[[SIZE]]
// CHECK:         %[[OWN:.*]] = arith.addi %[[FIRST]]
// CHECK:         %[[BASE:.*]] = llvm.getelementptr %arg1[%[[OWN]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK:         llvm.getelementptr %[[BASE]][0]
// CHECK:         llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<2xf32>
// CHECK:         llvm.getelementptr %[[BASE]][512]
// CHECK:         llvm.getelementptr %[[BASE]][8]
// CHECK:         llvm.getelementptr %[[BASE]][520]
// CHECK:         wgmma.fence
// Of a warp's columns, all rows.
// WARPS-LABEL: func @begin(
// WARPS:         %[[BASE:.*]] = llvm.getelementptr %arg1[
// WARPS:         llvm.getelementptr %[[BASE]][0]
// WARPS:         llvm.getelementptr %[[BASE]][512]
// WARPS:         llvm.getelementptr %[[BASE]][8]
// WARPS:         llvm.getelementptr %[[BASE]][520]
// WARPS:         llvm.getelementptr %[[BASE]][1024]
// WARPS:         llvm.getelementptr %[[BASE]][1536]
// WARPS:         mma.sync
// PLAIN-LABEL: func.func @begin(
// PLAIN:         llvm.load {{.*}} : !llvm.ptr -> f32
#size = #lacis.size<arg 2>
!ring = !lacis.ring<2, <64x64xbf16>>
!tile = !lacis.tile<64x64xbf16>
!acc = !lacis.acc<64x64xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "begin", shared = 0 : i64}]}} {
  func.func @begin(%y: !llvm.ptr, %kept: !llvm.ptr, %n: i64) attributes {lacis.gpu_kernel} {
    %c0 = arith.constant 0 : i32
    %c3 = arith.constant 3 : i32
    %ring = lacis.ring : !ring
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : i32) {
      %begin = lacis.load_acc %kept at %c3 : !llvm.ptr, i32 to !acc
      %t = lacis.acquire %ring : !ring -> !tile
      %sum = lacis.mma %t, %t into %begin : !tile, !tile into !acc
      %next = lacis.release %ring : !ring
      %last, %done = lacis.complete %next, %sum : !ring, !acc -> !ring, !acc
      lacis.store_tile %done to %y[%c0, %c0] transposed {shape = [#size, #size], type = bf16} : !acc to !llvm.ptr[i32, i32]
      lacis.yield
    }
    return
  }
}
