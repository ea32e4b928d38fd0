// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// CHECK: setmaxnreg.inc.sync.aligned.u32 {{.*}}232;
// CHECK: wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 1, 1;
// CHECK: stmatrix.sync.aligned.m8n8.x4.shared
// CHECK: setmaxnreg.dec.sync.aligned.u32 {{.*}}40;

// dw[i, j] = sum over b of dy[b, i] x[b, j] where w has a block of 128: a share is up to two blocks of one block row.
// A stage is 64 tokens of dy in the row and of x in each block's columns; a consumer has 64 rows of the blocks, and
// writes them where the values of w lie. Padding inside a block stays 0.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 128 : compressed, i mod 128 : dense, j mod 128 : dense)>
#lists = #lacis.format<(n, i, s) -> (n : dense, i : compressed<unique=false>, s : singleton)>
!dy = !lacis.tile<2x64x64xbf16>
!x = !lacis.tile<4x64x64xbf16>
!ring = !lacis.ring<4, <2x64x64xbf16>, <4x64x64xbf16>>
!acc = !lacis.acc<64x256xf32>
!part = !lacis.acc<64x64xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @grad_values(%w: tensor<?x?xi1, #bsr> {lacis.name = "w", lacis.axes = ["i", "j"]},
                         %dy: tensor<?x?xbf16> {lacis.name = "dy", lacis.axes = ["b", "i"]},
                         %x: tensor<?x?xbf16> {lacis.name = "x", lacis.axes = ["b", "j"]},
                         %dw: tensor<?x?xbf16, #bsr> {lacis.name = "dw", lacis.axes = ["i", "j"], lacis.output, lacis.sample = 0})
      attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %tokens = tensor.dim %x, %c0 : tensor<?x?xbf16>
    %steps = arith.ceildivui %tokens, %c64 : index
    %lists = lacis.balance #lacis.segment_schedule<length = 2, cost = #cost> of %w : tensor<?x?xi1, #bsr> to tensor<?x?x?xi1, #lists>
    %workers = tensor.dim %lists, %c0 : tensor<?x?x?xi1, #lists>
    lacis.loop "n" %n to %workers {
      %ring = lacis.ring : !ring
      lacis.roles producer {
        %end = lacis.level_loop "i0" %lists[1] at %n (%p, %i0) iter(%r0 = %ring) -> (!ring) : tensor<?x?x?xi1, #lists> {
          %r4 = lacis.level_loop "s" %lists[2] at %p (%q, %s) iter(%r1 = %r0) -> (!ring) : tensor<?x?x?xi1, #lists> {
            %i = arith.muli %i0, %c128 : index
            %i1 = arith.addi %i, %c64 : index
            %lo, %hi = lacis.bounds %w[1] at %i0 : tensor<?x?xi1, #bsr>
            %skipped = arith.muli %s, %c2 : index
            %first = arith.addi %lo, %skipped : index
            %left = arith.subi %hi, %first : index
            %blocks = arith.minsi %left, %c2 : index
            %r3 = lacis.loop "b0" %b0 to %steps iter(%r2 = %r1) -> (!ring) {
              %b = arith.muli %b0, %c64 : index
              %gs, %xs = lacis.acquire %r2 : !ring -> !dy, !x
              lacis.load_tile %dy[%b, %i] to %gs[%c0 : index] : tensor<?x?xbf16>[index, index] to !dy
              lacis.load_tile %dy[%b, %i1] to %gs[%c1 : index] : tensor<?x?xbf16>[index, index] to !dy
              lacis.loop "k" %k to %blocks {
                %position = arith.addi %first, %k : index
                %j0, %valid = lacis.coordinate %w[1] at %position from %lo : tensor<?x?xi1, #bsr> -> index
                %j = arith.muli %j0, %c128 : index
                %j1 = arith.addi %j, %c64 : index
                %place = arith.muli %k, %c2 : index
                %beside = arith.addi %place, %c1 : index
                lacis.load_tile %x[%b, %j] to %xs[%place : index] : tensor<?x?xbf16>[index, index] to !x
                lacis.load_tile %x[%b, %j1] to %xs[%beside : index] : tensor<?x?xbf16>[index, index] to !x
                lacis.yield
              }
              %next = lacis.release %r2 : !ring
              lacis.yield %next : !ring
            }
            lacis.yield %r3 : !ring
          }
          lacis.yield %r4 : !ring
        }
        lacis.yield
      } consumers 2 (%c : index) {
        %row = arith.muli %c, %c64 : index
        %end = lacis.level_loop "i0" %lists[1] at %n (%p, %i0) iter(%r0 = %ring) -> (!ring) : tensor<?x?x?xi1, #lists> {
          %r5 = lacis.level_loop "s" %lists[2] at %p (%q, %s) iter(%r1 = %r0) -> (!ring) : tensor<?x?x?xi1, #lists> {
            %none = lacis.splat %zero : f32 to !acc
            %r3, %sum = lacis.loop "b0" %b0 to %steps iter(%r2 = %r1, %a = %none) -> (!ring, !acc) {
              %gs, %xs = lacis.acquire %r2 : !ring -> !dy, !x
              %more = lacis.mma %gs[%c : index] transposed, %xs[%c0 : index] transposed into %a : !dy, !x into !acc
              %next = lacis.release %r2 : !ring
              lacis.yield %next, %more : !ring, !acc
            }
            %r4, %result = lacis.complete %r3, %sum : !ring, !acc -> !ring, !acc
            %lo, %hi = lacis.bounds %w[1] at %i0 : tensor<?x?xi1, #bsr>
            %skipped = arith.muli %s, %c2 : index
            %first = arith.addi %lo, %skipped : index
            %second = arith.addi %first, %c1 : index
            %p0 = lacis.columns %result from 0 : !acc to !part
            %p1 = lacis.columns %result from 64 : !acc to !part
            lacis.store_tile %p0 to %dw[%first, %row, %c0] : !part to tensor<?x?xbf16, #bsr>[index, index, index]
            lacis.store_tile %p1 to %dw[%first, %row, %c64] : !part to tensor<?x?xbf16, #bsr>[index, index, index]
            %both = arith.cmpi slt, %second, %hi : index
            scf.if %both {
              %p2 = lacis.columns %result from 128 : !acc to !part
              %p3 = lacis.columns %result from 192 : !acc to !part
              lacis.store_tile %p2 to %dw[%second, %row, %c0] : !part to tensor<?x?xbf16, #bsr>[index, index, index]
              lacis.store_tile %p3 to %dw[%second, %row, %c64] : !part to tensor<?x?xbf16, #bsr>[index, index, index]
            }
            lacis.yield %r4 : !ring
          }
          lacis.yield %r5 : !ring
        }
        lacis.yield
      }
      lacis.yield
    } bind<block.x>
    return
  }
}
