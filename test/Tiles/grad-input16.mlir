// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// CHECK: setmaxnreg.inc.sync.aligned.u32 {{.*}}160;
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 1, 0;
// CHECK: stmatrix.sync.aligned.m8n8.x4.trans
// CHECK: setmaxnreg.dec.sync.aligned.u32 {{.*}}32;

// dx[b, j] = sum over i of dy[b, i] w[i, j]: blocks of 16, tiles of 384 features and 128 tokens.
// The forward's kernel by columns: of the 64 x 384 elements of a stage, the slabs of 16 x 64 that hold any block.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
#slabs = #lacis.format<(i, j) -> (j floordiv 384 : dense, i floordiv 64 : compressed<unique=false>,
                                  (j floordiv 64 mod 6, i floordiv 16 mod 4) : bitmap, i mod 16 : dense, j mod 64 : dense)>
#lists = #lacis.format<(n, j, b) -> (n : dense, j : compressed<unique=false>, b : singleton)>
!dy = !lacis.tile<128x64xbf16>
!w = !lacis.tile<12x16x64xbf16>
!ring = !lacis.ring<5, <128x64xbf16>, <12x16x64xbf16>>
!acc = !lacis.acc<64x128xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @grad_input(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.axes = ["i", "j"]},
                        %dy: tensor<?x?xbf16> {lacis.name = "dy", lacis.axes = ["b", "i"]},
                        %dx: tensor<?x?xbf16> {lacis.name = "dx", lacis.axes = ["b", "j"], lacis.output})
      attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %one = arith.constant 1 : i32
    %four = arith.constant 4 : i32
    %eight = arith.constant 8 : i32
    %fifteen = arith.constant 15 : i32
    %zero = arith.constant 0.0 : f32
    %tokens = tensor.dim %dy, %c0 : tensor<?x?xbf16>
    %slabs = lacis.regroup #lacis.layout<format = #slabs, capacity = 12> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xbf16, #slabs>
    %lists = lacis.balance #lacis.tile_schedule<columns = 128, swizzle_group = 8, cost = #cost> of %slabs over %tokens : tensor<?x?xbf16, #slabs> to tensor<?x?x?xi1, #lists>
    %workers = tensor.dim %lists, %c0 : tensor<?x?x?xi1, #lists>
    lacis.loop "n" %n to %workers {
      %ring = lacis.ring : !ring
      lacis.roles producer {
        %end = lacis.level_loop "j0" %lists[1] at %n (%p, %j0) iter(%r0 = %ring) -> (!ring) : tensor<?x?x?xi1, #lists> {
          %r4 = lacis.level_loop "b0" %lists[2] at %p (%q, %b0) iter(%r1 = %r0) -> (!ring) : tensor<?x?x?xi1, #lists> {
            %b = arith.muli %b0, %c128 : index
            %r3 = lacis.level_loop "i0" %slabs[1] at %j0 (%s, %i0) iter(%r2 = %r1) -> (!ring) : tensor<?x?xbf16, #slabs> {
              %i = arith.muli %i0, %c64 : index
              %lo, %hi = lacis.bounds %slabs[2] at %s : tensor<?x?xbf16, #slabs>
              %count = arith.subi %hi, %lo : index
              %gs, %ws = lacis.acquire %r2 : !ring -> !dy, !w
              lacis.load_tile %dy[%b, %i] to %gs : tensor<?x?xbf16>[index, index] to !dy
              lacis.load_run %slabs at %lo count %count to %ws : tensor<?x?xbf16, #slabs>, index, index to !w
              %next = lacis.release %r2 : !ring
              lacis.yield %next : !ring
            }
            lacis.yield %r3 : !ring
          }
          lacis.yield %r4 : !ring
        }
        lacis.yield
      } consumers 3 (%c : index) {
        %c32 = arith.index_cast %c : index to i32
        %shift = arith.muli %c32, %eight : i32
        %bit = arith.shli %one, %shift : i32
        %below = arith.subi %bit, %one : i32
        %end = lacis.level_loop "j0" %lists[1] at %n (%p, %j0) iter(%r0 = %ring) -> (!ring) : tensor<?x?x?xi1, #lists> {
          %r6 = lacis.level_loop "b0" %lists[2] at %p (%q, %b0) iter(%r1 = %r0) -> (!ring) : tensor<?x?x?xi1, #lists> {
            %none = lacis.splat %zero : f32 to !acc
            %r4, %sum0, %sum1 = lacis.level_loop "i0" %slabs[1] at %j0 (%s, %i0) iter(%r2 = %r1, %a0 = %none, %a1 = %none) -> (!ring, !acc, !acc) : tensor<?x?xbf16, #slabs> {
              %bits = lacis.presence %slabs[2] at %s : tensor<?x?xbf16, #slabs>
              %before = arith.andi %bits, %below : i32
              %first0 = math.ctpop %before : i32
              %low = arith.shrui %bits, %shift : i32
              %mine0 = arith.andi %low, %fifteen : i32
              %own = math.ctpop %mine0 : i32
              %first1 = arith.addi %first0, %own : i32
              %high = arith.shrui %low, %four : i32
              %mine1 = arith.andi %high, %fifteen : i32
              %gs, %ws = lacis.acquire %r2 : !ring -> !dy, !w
              %more0 = lacis.mma %ws[%first0 : i32] transposed present %mine0, %gs into %a0 : !w, !dy into !acc
              %more1 = lacis.mma %ws[%first1 : i32] transposed present %mine1, %gs into %a1 : !w, !dy into !acc
              %next = lacis.release %r2 : !ring
              lacis.yield %next, %more0, %more1 : !ring, !acc, !acc
            }
            %r5, %result0, %result1 = lacis.complete %r4, %sum0, %sum1 : !ring, !acc, !acc -> !ring, !acc, !acc
            %tile = arith.muli %j0, %c6 : index
            %part = arith.muli %c, %c2 : index
            %place0 = arith.addi %tile, %part : index
            %place1 = arith.addi %place0, %c1 : index
            %group0 = lacis.origin %slabs at %place0 : tensor<?x?xbf16, #slabs>
            %group1 = lacis.origin %slabs at %place1 : tensor<?x?xbf16, #slabs>
            %j = arith.muli %group0, %c64 : index
            %k = arith.muli %group1, %c64 : index
            %b = arith.muli %b0, %c128 : index
            lacis.store_tile %result0 to %dx[%b, %j] transposed : !acc to tensor<?x?xbf16>[index, index]
            lacis.store_tile %result1 to %dx[%b, %k] transposed : !acc to tensor<?x?xbf16>[index, index]
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
