// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-tiles-hopper | FileCheck %s
// RUN: lacis-opt %s -lacis-lower-tiles-ampere | FileCheck %s --check-prefix=WARPS
// RUN: lacis-opt %s -lacis-lower-tiles-plain | FileCheck %s --check-prefix=PLAIN

// A tile that two loads fill: boxes of 32 rows, 4096 bytes apart; a part of a vector is a run of bytes, for boxes go to
// multiples of 128 bytes.
// CHECK:       lacis.artifact
// CHECK-SAME:  box = [64, 32]
// CHECK-LABEL: func @gathered(
// CHECK:         arith.constant 4096 : i32
// CHECK:         mbarrier.expect_tx{{.*}}
// CHECK:         cp.async.bulk.tensor.2d
// CHECK:         arith.constant 128 : i32
// CHECK:         cp.async.bulk.shared::cluster.global.mbarrier
// Eight threads copy 32 numbers behind the first 32.
// WARPS-LABEL: func @gathered(
// WARPS:         arith.constant 4096 : i32
// WARPS-COUNT-2: nvvm.cp.async.shared.global
// WARPS:         %[[CHUNKS:.*]] = arith.constant 8 : i32
// WARPS:         arith.cmpi ult, %{{.*}}, %[[CHUNKS]] : i32
// WARPS:         arith.constant 128 : i32
// WARPS:         nvvm.cp.async.shared.global
// PLAIN-LABEL: func @gathered(
// PLAIN:         func.call @gathered_producer(
!ring = !lacis.ring<2, <64x64xbf16>, <1x64xf32>>
!tile = !lacis.tile<64x64xbf16>
!line = !lacis.tile<1x64xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "gathered", shared = 0 : i64}]}} {
func.func @gathered(%x: !llvm.ptr, %y: !llvm.ptr, %n: i32) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %ring = lacis.ring : !ring
  lacis.roles producer {
    %t, %l = lacis.acquire %ring : !ring -> !tile, !line
    lacis.load_tile %x[%n, %c0] to %t {part = array<i64: 1, 2>, shape = [#lacis.size<64>, #lacis.size<64>]}
      : !llvm.ptr[i32, i32] to !tile
    lacis.load_tile %y[%c0, %n] to %l {part = array<i64: 1, 2>, shape = [#lacis.size<1>, #lacis.size<64>]}
      : !llvm.ptr[i32, i32] to !line
    %next = lacis.release %ring : !ring
    lacis.yield
  } consumers 1 (%c : i32) {
    %t, %l = lacis.acquire %ring : !ring -> !tile, !line
    %start = lacis.read_columns %l : !line to !lacis.acc<64x64xf32>
    %x0 = lacis.mma %t, %t into %start : !tile, !tile into !lacis.acc<64x64xf32>
    %x1 = lacis.complete %x0 : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
    %next = lacis.release %ring : !ring
    lacis.yield
  }
  return
}
}
