// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// RUN: not lacis-compile %s --target=cuda:sm_80 --emit=ptx -o - 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: lacis-compile %s --target=cuda:sm_75 --emit=ptx -o - | FileCheck %s --check-prefix=OLD
// OLD: .target sm_75
// OLD: bar{{.*}}.sync
// CHECK: setmaxnreg.inc.sync.aligned.u32 {{.*}}232;
// CHECK: wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16
// CHECK: stmatrix.sync.aligned.m8n8.x4.trans
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta
// CHECK: setmaxnreg.dec.sync.aligned.u32 {{.*}}40;
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global
// OTHER: rings of 196608 bytes are more than the 166848 bytes of shared memory; use fewer stages or smaller tiles

// y[b, i] = sum over j of x[b, j] w[i, j]: blocks of 64, tiles of 128 features and 256 tokens.
// Two block rows share the columns of either: a stage holds 64 columns of x and the one or two blocks of w there,
// which are read from where the values lie.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#pairs = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed,
                                  i floordiv 64 mod 2 : bitmap, link, i mod 64 : dense, j mod 64 : dense)>
#lists = #lacis.format<(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)>
!ring = !lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>
!acc = !lacis.acc<64x256xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @forward(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.axes = ["i", "j"]},
                     %x: tensor<?x?xbf16> {lacis.name = "x", lacis.axes = ["b", "j"]},
                     %y: tensor<?x?xbf16> {lacis.name = "y", lacis.axes = ["b", "i"], lacis.output})
      attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %one = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %tokens = tensor.dim %x, %c0 : tensor<?x?xbf16>
    %pairs = lacis.regroup #lacis.layout<format = #pairs> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xbf16, #pairs>
    %lists = lacis.balance #lacis.tile_schedule<columns = 256, swizzle_group = 4, cost = #cost> of %pairs over %tokens : tensor<?x?xbf16, #pairs> to tensor<?x?x?xi1, #lists>
    %workers = tensor.dim %lists, %c0 : tensor<?x?x?xi1, #lists>
    lacis.loop "n" %n to %workers {
      %ring = lacis.ring : !ring
      lacis.roles producer {
        %end = lacis.level_loop "i0" %lists[1] at %n (%p, %i0) iter(%r0 = %ring) -> (!ring) : tensor<?x?x?xi1, #lists> {
          %r4 = lacis.level_loop "b0" %lists[2] at %p (%q, %b0) iter(%r1 = %r0) -> (!ring) : tensor<?x?x?xi1, #lists> {
            %b = arith.muli %b0, %c256 : index
            %r3 = lacis.level_loop "j0" %pairs[1] at %i0 (%s, %j0) iter(%r2 = %r1) -> (!ring) : tensor<?x?xbf16, #pairs> {
              %j = arith.muli %j0, %c64 : index
              %lo, %hi = lacis.bounds %pairs[2] at %s : tensor<?x?xbf16, #pairs>
              %xs, %ws = lacis.acquire %r2 : !ring -> !lacis.tile<256x64xbf16>, !lacis.tile<2x64x64xbf16>
              lacis.load_tile %x[%b, %j] to %xs : tensor<?x?xbf16>[index, index] to !lacis.tile<256x64xbf16>
              %count = arith.subi %hi, %lo : index
              lacis.loop "i1" %k to %count {
                %position = arith.addi %lo, %k : index
                %slot = lacis.locate %pairs[3] at %position() : tensor<?x?xbf16, #pairs>
                lacis.load_tile %w[%slot, %c0, %c0] to %ws[%k : index] : tensor<?x?xbf16, #bsr>[index, index, index] to !lacis.tile<2x64x64xbf16>
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
        %c32 = arith.index_cast %c : index to i32
        %bit = arith.shli %one, %c32 : i32
        %below = arith.subi %bit, %one : i32
        %end = lacis.level_loop "i0" %lists[1] at %n (%p, %i0) iter(%r0 = %ring) -> (!ring) : tensor<?x?x?xi1, #lists> {
          %r6 = lacis.level_loop "b0" %lists[2] at %p (%q, %b0) iter(%r1 = %r0) -> (!ring) : tensor<?x?x?xi1, #lists> {
            %none = lacis.splat %zero : f32 to !acc
            %r4, %sum = lacis.level_loop "j0" %pairs[1] at %i0 (%s, %j0) iter(%r2 = %r1, %a = %none) -> (!ring, !acc) : tensor<?x?xbf16, #pairs> {
              %bits = lacis.presence %pairs[2] at %s : tensor<?x?xbf16, #pairs>
              %before = arith.andi %bits, %below : i32
              %first = math.ctpop %before : i32
              %shifted = arith.shrui %bits, %c32 : i32
              %mine = arith.andi %shifted, %one : i32
              %xs, %ws = lacis.acquire %r2 : !ring -> !lacis.tile<256x64xbf16>, !lacis.tile<2x64x64xbf16>
              %more = lacis.mma %ws[%first : i32] present %mine, %xs into %a : !lacis.tile<2x64x64xbf16>, !lacis.tile<256x64xbf16> into !acc
              %next = lacis.release %r2 : !ring
              lacis.yield %next, %more : !ring, !acc
            }
            %r5, %result = lacis.complete %r4, %sum : !ring, !acc -> !ring, !acc
            %pair = arith.muli %i0, %c2 : index
            %place = arith.addi %pair, %c : index
            %group = lacis.origin %pairs at %place : tensor<?x?xbf16, #pairs>
            %i = arith.muli %group, %c64 : index
            %b = arith.muli %b0, %c256 : index
            lacis.store_tile %result to %y[%b, %i] transposed : !acc to tensor<?x?xbf16>[index, index]
            lacis.yield %r5 : !ring
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
