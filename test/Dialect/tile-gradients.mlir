// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

// Transposed tiles, parts of accumulators and what an epilogue reads print as they are written.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#kept = #lacis.format<(b, i) -> (b floordiv 64 : dense, i floordiv 64 : dense, i mod 64 : dense, b mod 64 : dense)>
#lists = #lacis.format<(n, i, s) -> (n : dense, i : compressed<unique=false>, s : singleton)>
!list = !lacis.tile<4x64x64xbf16>
!tile = !lacis.tile<64x64xbf16>
!acc = !lacis.acc<64x256xf32>
!part = !lacis.acc<64x64xf32>

// CHECK-LABEL: func @shares(
func.func @shares(%w: tensor<?x?xi1, #bsr>) {
  // CHECK: lacis.balance #lacis.segment_schedule<length = 8, cost = <{{.*}}>> of %{{.*}} : tensor<?x?xi1, #{{.*}}> to tensor<?x?x?xi1, #{{.*}}>
  %lists = lacis.balance #lacis.segment_schedule<length = 8, cost = #cost> of %w : tensor<?x?xi1, #bsr> to tensor<?x?x?xi1, #lists>
  return
}

// CHECK-LABEL: func @products(
func.func @products(%a: !tile, %b: !list, %n: index, %present: i32, %acc: !acc, %part: !part) {
  // CHECK: lacis.mma %{{.*}} transposed, %{{.*}}[%{{.*}} : index] transposed into %{{.*}} : !lacis.tile<64x64xbf16>, !lacis.tile<4x64x64xbf16> into !lacis.acc<64x256xf32>
  %0 = lacis.mma %a transposed, %b[%n : index] transposed into %acc : !tile, !list into !acc
  // CHECK: lacis.mma %{{.*}}[%{{.*}} : index] transposed present %{{.*}}, %{{.*}} into %{{.*}} : !lacis.tile<4x64x64xbf16>, !lacis.tile<64x64xbf16> into
  %1 = lacis.mma %b[%n : index] transposed present %present, %a into %part : !list, !tile into !part
  // CHECK: lacis.mma_gathered %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}}[%{{.*}}] into %{{.*}} : !lacis.tile<4x64x64xbf16>[index, index], !lacis.tile<4x64x64xbf16>[index] into !lacis.acc<64x64xf32>
  %gathered = lacis.mma_gathered %b[%n, %n], %b[%n] into %part : !list[index, index], !list[index] into !part
  // CHECK: lacis.columns %{{.*}} from 192 : !lacis.acc<64x256xf32> to !lacis.acc<64x64xf32>
  %2 = lacis.columns %0 from 192 : !acc to !part
  // CHECK: lacis.read_tile %{{.*}}[%{{.*}} : index] transposed : !lacis.tile<4x64x64xbf16> to !lacis.acc<64x64xf32>
  %3 = lacis.read_tile %b[%n : index] transposed : !list to !part
  return
}

// CHECK-LABEL: func @run(
func.func @run(%w: tensor<?x?xbf16, #bsr>, %list: !list, %n: index) {
  %own = lacis.regroup #lacis.layout<format = #bsr> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xbf16, #bsr>
  // CHECK: lacis.load_run %{{.*}} at %{{.*}} count %{{.*}} to %{{.*}} : tensor<?x?xbf16, #{{.*}}>, index, index to !lacis.tile<4x64x64xbf16>
  lacis.load_run %own at %n count %n to %list : tensor<?x?xbf16, #bsr>, index, index to !lacis.tile<4x64x64xbf16>
  return
}

// CHECK-LABEL: func @memory(
func.func @memory(%bias: tensor<?xf32>, %dw: tensor<?x?xbf16, #bsr>, %part: !part, %i: index, %bits: !llvm.ptr, %n: i32) {
  // CHECK: lacis.load_rows %{{.*}}[%{{.*}}] : tensor<?xf32>[index] to !lacis.acc<64x1xf32>
  %0 = lacis.load_rows %bias[%i] : tensor<?xf32>[index] to !lacis.acc<64x1xf32>
  // CHECK: %[[KEPT:.*]] = lacis.workspace
  %kept = lacis.workspace(%i, %i) : tensor<?x?xf32, #kept>
  // CHECK: lacis.load_acc %[[KEPT]] at %{{.*}} : tensor<?x?xf32, #{{.*}}>, index to !lacis.acc<64x64xf32>
  %2 = lacis.load_acc %kept at %i : tensor<?x?xf32, #kept>, index to !part
  // CHECK: lacis.load_acc %[[KEPT]] at %{{.*}} : tensor<?x?xf32, #{{.*}}>, index onto %{{.*}} : !lacis.acc<64x64xf32> to !lacis.acc<64x64xf32>
  %3 = lacis.load_acc %kept at %i : tensor<?x?xf32, #kept>, index onto %2 : !part to !part
  // CHECK: lacis.store_acc %{{.*}} to %[[KEPT]] at %{{.*}} : !lacis.acc<64x64xf32> to tensor<?x?xf32, #{{.*}}>, index
  lacis.store_acc %3 to %kept at %i : !part to tensor<?x?xf32, #kept>, index
  // CHECK: lacis.load_entries %{{.*}}[%{{.*}}, %{{.*}}] from %{{.*}} of %{{.*}} stride 64 : !llvm.ptr[i32, i32] from i32 of i32 to !lacis.acc<64x64xf32>
  %1 = lacis.load_entries %bits[%n, %n] from %n of %n stride 64 : !llvm.ptr[i32, i32] from i32 of i32 to !part
  // CHECK: lacis.store_blocks %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] : !lacis.acc<64x64xf32> to tensor<?x?xbf16, #{{.*}}>[i32, i32]
  lacis.store_blocks %part to %dw[%n, %n] : !part to tensor<?x?xbf16, #bsr>[i32, i32]
  // CHECK: lacis.store_tile %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] : !lacis.acc<64x64xf32> to tensor<?x?xbf16, #{{.*}}>[index, index, index]
  lacis.store_tile %part to %dw[%i, %i, %i] : !part to tensor<?x?xbf16, #bsr>[index, index, index]
  return
}
