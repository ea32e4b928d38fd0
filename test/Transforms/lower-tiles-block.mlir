// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-plain | FileCheck %s

// On a GPU the threads of a block share the tiles in plain loops: the stage lies in shared memory, and is filled between
// two barriers. Each thread copies every 64th element, and has every 64th row of an accumulator.
// CHECK:       lacis.artifact = {launches = [{block = [64, 1, 1], entry = "product", shared = 8192 : i64}]}
// CHECK-LABEL: func private @product_producer(
// CHECK-SAME:    %[[THREAD:[^: ]*]]: i64, %{{[^: ]*}}: i32, %{{[^: ]*}}: !llvm.ptr)
// CHECK:         scf.for %[[N:.*]] = %[[THREAD]] to
// CHECK-DAG:       arith.divui %[[N]]
// CHECK-DAG:       arith.remui %[[N]]
// CHECK-LABEL: func @product(
// CHECK-SAME:    lacis.block = array<i64: 64, 1, 1>
// CHECK:         %[[SHARED:.*]] = llvm.mlir.addressof @lacis_shared : !llvm.ptr<3>
// CHECK:         llvm.addrspacecast %{{.*}} : !llvm.ptr<3> to !llvm.ptr
// CHECK:         %[[X:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK:         %[[ROW:.*]] = arith.extui %[[X]]
// CHECK:         nvvm.barrier
// CHECK-NEXT:    func.call @product_producer(
// CHECK-NEXT:    nvvm.barrier
// CHECK:         scf.for %{{.*}} = %[[ROW]] to
// CHECK-NOT:     lacis.roles
#size = #lacis.size<arg 1>
module attributes {lacis.artifact = {launches = [{entry = "product", block = [1, 1, 1], shared = 0 : i64}]}} {
  func.func @product(%x: !llvm.ptr, %n: i64, %rounds: i32) attributes {lacis.gpu_kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
    lacis.roles producer {
      %end = scf.for %i = %c0 to %rounds step %c1 iter_args(%r = %ring) -> (!lacis.ring<2, <64x64xbf16>>) : i32 {
        %t = lacis.acquire %r : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
        lacis.load_tile %x[%c0, %i] to %t {shape = [#size, #size]} : !llvm.ptr[i32, i32] to !lacis.tile<64x64xbf16>
        %next = lacis.release %r : !lacis.ring<2, <64x64xbf16>>
        scf.yield %next : !lacis.ring<2, <64x64xbf16>>
      }
      lacis.yield
    } consumers 2 (%c : i32) {
      %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
      %end, %sum = scf.for %i = %c0 to %rounds step %c1 iter_args(%r = %ring, %a = %acc) -> (!lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>) : i32 {
        %t = lacis.acquire %r : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
        %b = lacis.mma %t, %t into %a : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
        %next = lacis.release %r : !lacis.ring<2, <64x64xbf16>>
        scf.yield %next, %b : !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>
      }
      %r2, %done = lacis.complete %end, %sum : !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32> -> !lacis.ring<2, <64x64xbf16>>, !lacis.acc<64x64xf32>
      lacis.store_tile %done to %x[%c0, %c0] transposed {shape = [#size, #size], type = bf16} : !lacis.acc<64x64xf32> to !llvm.ptr[i32, i32]
      lacis.yield
    }
    return
  }
}

// -----

module {
  func.func @large() attributes {lacis.gpu_kernel} {
    // expected-error@+1 {{tiles: a stage of 131072 bytes is more than the 65536 bytes of shared memory; use smaller tiles}}
    %ring = lacis.ring : !lacis.ring<2, <1024x64xbf16>>
    lacis.roles producer {
      %t = lacis.acquire %ring : !lacis.ring<2, <1024x64xbf16>> -> !lacis.tile<1024x64xbf16>
      lacis.yield
    } consumers 1 (%c : i32) {
      lacis.yield
    }
    return
  }
}
