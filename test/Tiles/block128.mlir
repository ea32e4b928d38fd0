// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// CHECK: setmaxnreg.inc.sync.aligned.u32 {{.*}}232;
// CHECK: wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16
// CHECK: stmatrix.sync.aligned.m8n8.x4.trans

// y[b, i] = sum over j of x[b, j] w[i, j]: blocks of 128, tiles of 128 features and 256 tokens.
// A block is two stages of 64 of its columns.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 128 : compressed, i mod 128 : dense, j mod 128 : dense)>
#lists = #lacis.format<(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)>
!x = !lacis.tile<256x64xbf16>
!w = !lacis.tile<2x64x64xbf16>
!ring = !lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>
!acc = !lacis.acc<64x256xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @forward(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.axes = ["i", "j"]},
                     %x: tensor<?x?xbf16> {lacis.name = "x", lacis.axes = ["b", "j"]},
                     %y: tensor<?x?xbf16> {lacis.name = "y", lacis.axes = ["b", "i"], lacis.output})
      attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %tokens = tensor.dim %x, %c0 : tensor<?x?xbf16>
    %lists = lacis.balance #lacis.tile_schedule<columns = 256, swizzle_group = 4, cost = #cost> of %w over %tokens : tensor<?x?xbf16, #bsr> to tensor<?x?x?xi1, #lists>
    %workers = tensor.dim %lists, %c0 : tensor<?x?x?xi1, #lists>
    lacis.loop "n" %n to %workers {
      %ring = lacis.ring : !ring
      lacis.roles producer {
        %end = lacis.level_loop "i0" %lists[1] at %n (%p, %i0) iter(%r0 = %ring) -> (!ring) : tensor<?x?x?xi1, #lists> {
          %r5 = lacis.level_loop "b0" %lists[2] at %p (%q, %b0) iter(%r1 = %r0) -> (!ring) : tensor<?x?x?xi1, #lists> {
            %b = arith.muli %b0, %c256 : index
            %r3 = lacis.level_loop "j0" %w[1] at %i0 (%slot, %j0) iter(%r2 = %r1) -> (!ring) : tensor<?x?xbf16, #bsr> {
              %left = arith.muli %j0, %c128 : index
              %end = lacis.loop "half" %h to %c2 iter(%r = %r2) -> (!ring) {
                %column = arith.muli %h, %c64 : index
                %j = arith.addi %left, %column : index
                %xs, %ws = lacis.acquire %r : !ring -> !x, !w
                lacis.load_tile %x[%b, %j] to %xs : tensor<?x?xbf16>[index, index] to !x
                lacis.load_tile %w[%slot, %c0, %column] to %ws[%c0 : index] : tensor<?x?xbf16, #bsr>[index, index, index] to !w
                lacis.load_tile %w[%slot, %c64, %column] to %ws[%c1 : index] : tensor<?x?xbf16, #bsr>[index, index, index] to !w
                %next = lacis.release %r : !ring
                lacis.yield %next : !ring
              }
              lacis.yield %end : !ring
            }
            lacis.yield %r3 : !ring
          }
          lacis.yield %r5 : !ring
        }
        lacis.yield
      } consumers 2 (%c : index) {
        %row = arith.muli %c, %c64 : index
        %end = lacis.level_loop "i0" %lists[1] at %n (%p, %i0) iter(%r0 = %ring) -> (!ring) : tensor<?x?x?xi1, #lists> {
          %r6 = lacis.level_loop "b0" %lists[2] at %p (%q, %b0) iter(%r1 = %r0) -> (!ring) : tensor<?x?x?xi1, #lists> {
            %top = arith.muli %i0, %c128 : index
            %i = arith.addi %top, %row : index
            %b = arith.muli %b0, %c256 : index
            %none = lacis.splat %zero : f32 to !acc
            %lo, %hi = lacis.bounds %w[1] at %i0 : tensor<?x?xbf16, #bsr>
            %blocks = arith.subi %hi, %lo : index
            %stages = arith.addi %blocks, %blocks : index
            %r3, %sum = lacis.loop "j0" %s to %stages iter(%r2 = %r1, %a = %none) -> (!ring, !acc) {
              %xs, %ws = lacis.acquire %r2 : !ring -> !x, !w
              %more = lacis.mma %ws[%c : index], %xs into %a : !w, !x into !acc
              %next = lacis.release %r2 : !ring
              lacis.yield %next, %more : !ring, !acc
            }
            %r4, %result = lacis.complete %r3, %sum : !ring, !acc -> !ring, !acc
            lacis.store_tile %result to %y[%b, %i] transposed : !acc to tensor<?x?xbf16>[index, index]
            lacis.yield %r4 : !ring
          }
          lacis.yield %r6 : !ring
        }
        lacis.yield
      }
      lacis.yield
    } bind<block.x>
    return
  }
}
