// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper | FileCheck %s

// Rows come from anywhere in a stage: each warp reads the group that its 16 rows are in, transposed, into registers; columns
// begin inside of a line. The registers stay until the next group of products but one is under way. After the last all
// are complete, and the stage itself is given back.
// CHECK-LABEL: func @gathered(
// CHECK:         arith.divui %[[WARP:.*]], %c1_i32
// CHECK-COUNT-3: arith.select
// CHECK:         %[[A:.*]] = nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>
// CHECK:         nvvm.wgmma.fence.aligned
// CHECK:         wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$16, $17, $18, $19}, $20, 1, 1, 1, 1;
// CHECK:         nvvm.wgmma.commit.group
// CHECK-NEXT:    nvvm.wgmma.wait.group.sync.aligned 1
// CHECK:         nvvm.ldmatrix
// CHECK:         nvvm.wgmma.wait.group.sync.aligned 1
// CHECK-NEXT:    llvm.inline_asm has_side_effects asm_dialect = att "", "r,r,r,r"
// CHECK:         nvvm.wgmma.wait.group.sync.aligned 0
// CHECK-NEXT:    llvm.inline_asm has_side_effects asm_dialect = att "", "r,r,r,r"
// CHECK-NOT:     wait.group
// CHECK:         mbarrier.arrive
!ring = !lacis.ring<3, <8x32x64xbf16>, <10x32x64xbf16>>
!rows = !lacis.tile<8x32x64xbf16>
!columns = !lacis.tile<10x32x64xbf16>
!acc = !lacis.acc<64x32xf32>
module attributes {lacis.artifact = {args = [], launches = [{block = [1], entry = "gathered", shared = 0 : i64}]}} {
  func.func @gathered(%r: i32, %n: i32) attributes {lacis.gpu_kernel} {
    %zero = arith.constant 0.0 : f32
    %ring = lacis.ring : !ring
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : i32) {
      %none = lacis.splat %zero : f32 to !acc
      %t, %u = lacis.acquire %ring : !ring -> !rows, !columns
      %0 = lacis.mma_gathered %t[%r, %n, %r, %n, %n, %r, %n, %r], %u[%n, %r] into %none : !rows[i32, i32, i32, i32, i32, i32, i32, i32], !columns[i32, i32] into !acc
      %next = lacis.release %ring : !ring
      lacis.yield
    }
    return
  }
}

// -----

func.func @lines(%zero: f32, %n: i32) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <2x32x32xbf16>>
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x16xf32>
    %t = lacis.acquire %ring : !lacis.ring<2, <2x32x32xbf16>> -> !lacis.tile<2x32x32xbf16>
    // expected-error@+1 {{tiles: rows are gathered by 16, 32 or 64, and columns by 16, 32 or 64, from tiles of 64}}
    %0 = lacis.mma_gathered %t[%n], %t[%n] into %acc : !lacis.tile<2x32x32xbf16>[i32], !lacis.tile<2x32x32xbf16>[i32] into !lacis.acc<64x16xf32>
    lacis.yield
  }
  return
}
