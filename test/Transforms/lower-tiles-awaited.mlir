// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper | FileCheck %s

// Two products are under way at once. The first is waited for by itself, and its stage is given back then, before the
// second one is complete. The second takes its left side from registers, which stay as they are until then.
// CHECK-LABEL: func @chain(
// CHECK:       nvvm.setmaxregister increase
// CHECK:         nvvm.wgmma.fence.aligned
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 1, 1, 0, 0;
// CHECK:         nvvm.wgmma.commit.group.sync.aligned
// CHECK-NOT:     nvvm.wgmma.wait.group
// CHECK-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, {${{[0-9]+}}, ${{[0-9]+}}, ${{[0-9]+}}, ${{[0-9]+}}}, ${{[0-9]+}}, 1, 1, 1, 1;
// CHECK:         nvvm.wgmma.commit.group.sync.aligned
// CHECK:         nvvm.wgmma.wait.group.sync.aligned 1
// CHECK:         mbarrier.arrive
// CHECK:         nvvm.wgmma.wait.group.sync.aligned 0
// CHECK:         llvm.inline_asm has_side_effects asm_dialect = att "", "r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r"
// CHECK:         mbarrier.arrive
// CHECK-COUNT-16: cvt.rn.bf16x2.f32
!pair = !lacis.ring<2, <2x64x64xbf16>>
!ring = !lacis.ring<2, <64x64xbf16>>
!acc = !lacis.acc<64x64xf32>
!half = !lacis.acc<64x64xbf16>
func.func @chain(%rounds: i32, %half: bf16) attributes {lacis.gpu_kernel, lacis.block = array<i64: 1, 1, 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  %k = lacis.ring : !pair
  %v = lacis.ring : !ring
  lacis.roles producer {
    lacis.yield
  } consumers 1 (%c : i32) {
    %none = lacis.splat %zero : f32 to !acc
    %first = lacis.map %none {
    ^bb0(%e: f32):
      %h = arith.truncf %e : f32 to bf16
      lacis.yield %h : bf16
    } : !acc -> !half
    %e:4 = scf.for %i = %c0 to %rounds step %c1 iter_args(%k0 = %k, %v0 = %v, %b = %first, %o = %none) -> (!pair, !ring, !half, !acc) : i32 {
      %kt = lacis.acquire %k0 : !pair -> !lacis.tile<2x64x64xbf16>
      %x = lacis.mma %kt, %kt : !lacis.tile<2x64x64xbf16>, !lacis.tile<2x64x64xbf16> into !acc
      %vt = lacis.acquire %v0 : !ring -> !lacis.tile<64x64xbf16>
      %y = lacis.mma %b, %vt transposed into %o : !half, !lacis.tile<64x64xbf16> into !acc
      %s = lacis.complete %x : !acc -> !acc
      %k1 = lacis.release %k0 : !pair
      %o1 = lacis.complete %y : !acc -> !acc
      %v1 = lacis.release %v0 : !ring
      %b1 = lacis.map %s {
      ^bb0(%e: f32):
        %h = arith.truncf %e : f32 to bf16
        lacis.yield %h : bf16
      } : !acc -> !half
      scf.yield %k1, %v1, %b1, %o1 : !pair, !ring, !half, !acc
    }
    lacis.yield
  }
  return
}
