// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-tiles-hopper | FileCheck %s
// RUN: lacis-opt %s -lacis-lower-tiles-ampere | FileCheck %s --check-prefix=ADDRESS

// A box of a batch has one matrix, which a tensor map of three axes counts. Elsewhere the address begins at the matrix.
// A vector along the columns is read where the store computes its part: two neighbours, for both rows of a thread.
// CHECK: lacis.artifact = {{.*}}box = [64, 64, 1]{{.*}}shape = [#lacis.size<64>, #lacis.size<128>, #lacis.size<arg 2>], swizzle = 128
// CHECK-LABEL: func.func @batch(
// CHECK:         cp.async.bulk.tensor.3d.shared::cluster
// CHECK:         wgmma.mma_async
// CHECK:         %[[ALWAYS:.*]] = arith.cmpi ne
// CHECK:         scf.if %[[ALWAYS]] {
// CHECK-COUNT-2:   llvm.load %{{.*}} -> bf16
// CHECK-COUNT-4:   arith.addf
// CHECK-COUNT-2:   llvm.load %{{.*}} -> bf16
// CHECK:           stmatrix
// CHECK:         cp.async.bulk.tensor.3d.global.shared
// ADDRESS-LABEL: func.func @batch(
// ADDRESS:       %[[ELEMENTS:.*]] = arith.muli %c128_i64{{.*}}, %c64_i64
// ADDRESS:       %[[FIRST:.*]] = arith.muli %{{.*}}, %[[ELEMENTS]]
// ADDRESS:       llvm.getelementptr %{{.*}}[%[[FIRST]]] {{.*}} bf16
// ADDRESS:       llvm.load %{{.*}} -> bf16
#many = #lacis.size<arg 2>
#tall = #lacis.size<128>
#wide = #lacis.size<64>
!ring = !lacis.ring<2, <64x64xbf16>>
!tile = !lacis.tile<64x64xbf16>
!acc = !lacis.acc<64x64xf32>
module attributes {lacis.artifact = {args = [{kind = "operand", operand = 0 : i64}, {kind = "operand", operand = 1 : i64}, {dim = 0 : i64, kind = "dim", operand = 0 : i64}],
                                     launches = [{block = [1], entry = "batch", shared = 0 : i64}]}} {
  func.func @batch(%x: !llvm.ptr, %v: !llvm.ptr, %n: i64, %matrix: i32) attributes {lacis.gpu_kernel} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %ring = lacis.ring : !ring
    lacis.roles producer {
      %t = lacis.acquire %ring : !ring -> !tile
      lacis.load_tile %x[%matrix, %c0, %c0] to %t {shape = [#many, #tall, #wide]} : !llvm.ptr[i32, i32, i32] to !tile
      %next = lacis.release %ring : !ring
      lacis.yield
    } consumers 1 (%c : i32) {
      %none = lacis.splat %zero : f32 to !acc
      %t = lacis.acquire %ring : !ring -> !tile
      %sum = lacis.mma %t, %t into %none : !tile, !tile into !acc
      %next = lacis.release %ring : !ring
      %end, %done = lacis.complete %next, %sum : !ring, !acc -> !ring, !acc
      %bias = lacis.load_columns %v[%c0] of %c64 : i32 {type = bf16} : !llvm.ptr[i32] to !acc
      %all = lacis.map %done, %bias {
      ^bb0(%a: f32, %b: f32):
        %both = arith.addf %a, %b : f32
        lacis.yield %both : f32
      } : !acc, !acc -> !acc
      lacis.store_tile %all to %x[%matrix, %c0, %c0] {shape = [#many, #tall, #wide], type = bf16} : !acc to !llvm.ptr[i32, i32, i32]
      lacis.yield
    }
    return
  }
}
