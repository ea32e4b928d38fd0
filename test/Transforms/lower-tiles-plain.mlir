// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-plain | FileCheck %s

// The producer becomes a function that goes on where it stopped: it fills the stage, keeps in a frame what it has to
// know, and returns. What lies outside of the matrix is zero.
// CHECK-LABEL: func private @product_producer(
// CHECK-SAME:    %[[FRAME:[^: ]*]]: !llvm.ptr) attributes {llvm.linkage = #llvm.linkage<internal>}
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[FRAME]][0]
// CHECK:         %[[STATE:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i32
// CHECK:         cf.switch %[[STATE]] : i32, [
// CHECK-NEXT:      default: ^[[FIRST:bb[0-9]+]],
// CHECK-NEXT:      1: ^[[REST:bb[0-9]+]]
// CHECK:       ^[[FIRST]]:
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             %[[VALUE:.*]] = scf.if %{{.*}} -> (bf16)
// CHECK:             llvm.store %[[VALUE]]
// CHECK:         llvm.store %{{.*}} : i32, !llvm.ptr
// CHECK:         return
// CHECK:       ^[[REST]]:

// One consumer follows the other; each starts the producer anew, and calls it for a stage. Products are sums in order
// of rows and columns, which nothing reads while they grow.
// CHECK-LABEL: func @product(
// CHECK-DAG:     %[[SUM:.*]] = llvm.alloca %{{.*}} x f32
// CHECK-DAG:     %[[TILE:.*]] = llvm.alloca %{{.*}} x bf16
// CHECK-DAG:     %[[MEMORY:.*]] = llvm.alloca %{{.*}} x i8
// CHECK:         scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} : i32 {
// CHECK:           llvm.store %{{.*}}, %[[MEMORY]]
// CHECK:           scf.for
// CHECK:             func.call @product_producer(
// CHECK:             scf.for
// CHECK:               scf.for
// CHECK:                 scf.for %{{.*}} iter_args(
// CHECK:                   arith.mulf
// CHECK:                   arith.addf
// CHECK:                 arith.addf
// CHECK-NEXT:            arith.muli
// CHECK:                 llvm.store
// CHECK:           arith.truncf
// CHECK-NOT:       lacis.
#size = #lacis.size<arg 1>
func.func @product(%x: !llvm.ptr, %n: i64, %rounds: i32) {
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

// -----

// Rings beside others have all their stages, and a place is its number: a consumer calls the producer until that many are
// filled, whatever else the producer fills before.
// CHECK-LABEL: func @rings(
// CHECK-COUNT-2: llvm.alloca %{{.*}} x bf16
// CHECK:         scf.for
// CHECK:           %[[NUMBER:.*]] = llvm.load %{{.*}} : !llvm.ptr -> i64
// CHECK:           scf.while
// CHECK:             llvm.load %[[FILLED:.*]] : !llvm.ptr -> i64
// CHECK:             scf.condition
// CHECK:             func.call @rings_producer(
// CHECK:           arith.remui %[[NUMBER]], %c3_i64
func.func @rings() {
  %first = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  %second = lacis.ring : !lacis.ring<3, <64x64xbf16>>
  lacis.roles producer {
    %t = lacis.acquire %first : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    %t1 = lacis.release %first : !lacis.ring<2, <64x64xbf16>>
    %u = lacis.acquire %second : !lacis.ring<3, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    %u1 = lacis.release %second : !lacis.ring<3, <64x64xbf16>>
    lacis.yield
  } consumers 1 (%c : i32) {
    %u = lacis.acquire %second : !lacis.ring<3, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    lacis.yield
  }
  return
}
