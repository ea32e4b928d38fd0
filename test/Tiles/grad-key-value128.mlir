// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// RUN: lacis-compile %s --target=cpu --emit=target -o - | FileCheck %s --check-prefix=PLAIN
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 0;
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 1;
// PLAIN: scf.while
// The gradients of attention128 with respect to kv, the rows of k before those of v in one tensor: dv = pT dy and
// dk = dsT q / sqrt(128), where pT = exp(k qT / sqrt(128) - lse) and dsT = pT (v dyT - delta), with lse and delta by column.
// The sums k qT and v dyT begin there: `start` is -lse sqrt(128), `less` is -delta. A block of 128 columns walks the rows
// that have it, by the transposed index. Rows of k come by the ring of q and stay in registers, those of v stay in a ring
// of one stage. Columns without blocks are 0. Two consumers have 64 columns each, and a block is walked in two steps of 64 rows.
// v dyT of a round is multiplied beside dv, and k qT of the next beside dk: a place of the ring of q is kept beyond that.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 128 : compressed, i mod 128 : dense, j mod 128 : dense)>
#turned = #lacis.format<(i, j) -> (j floordiv 128 : dense, i floordiv 128 : compressed, link, i mod 128 : dense, j mod 128 : dense)>
#lists = #lacis.format<(n, j, h) -> (n : dense, j : compressed<unique=false>, h : singleton)>
!p = tensor<?x?xbf16, #bsr>  !turned = tensor<?x?xbf16, #turned>  !lists = tensor<?x?x?xi1, #lists>
!x = tensor<?x?xbf16>  !vector = tensor<?xf32>  !tile = !lacis.tile<2x64x64xbf16>  !line = !lacis.tile<1x64xf32>
!qring = !lacis.ring<5, <2x64x64xbf16>, <1x64xf32>>  !dring = !lacis.ring<5, <2x64x64xbf16>, <1x64xf32>>
!vring = !lacis.ring<1, <4x64x64xbf16>>  !four = !lacis.tile<4x64x64xbf16>
!held = !lacis.acc<64x128xbf16>  !s = !lacis.acc<64x64xf32>  !e = !lacis.acc<64x64xbf16>  !o = !lacis.acc<64x128xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @grad_key_value(%p: !p {lacis.name = "p", lacis.axes = ["i", "j"]}, %q: !x {lacis.name = "q", lacis.axes = ["r", "d"]},
                            %kv: !x {lacis.name = "kv", lacis.axes = ["s", "d"]},
                            %dy: !x {lacis.name = "dy", lacis.axes = ["r", "d"]}, %start: !vector {lacis.name = "start", lacis.axes = ["r"]},
                            %less: !vector {lacis.name = "less", lacis.axes = ["r"]},
                            %dkv: !x {lacis.name = "dkv", lacis.axes = ["s", "d"], lacis.output}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index  %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index  %c128 = arith.constant 128 : index  %f0 = arith.constant 0.0 : f32
    %scale = arith.constant 0.12751743 : f32  %root = arith.constant 0.08838835 : f32 // log2 e, and 1, by the root of 128
    %both = tensor.dim %kv, %c0 : !x  %all = arith.ceildivui %both, %c2 : index // rows of k, and of v
    %rows = tensor.dim %p, %c0 : !p  %columns = tensor.dim %p, %c1 : !p  %heads = arith.ceildivui %all, %columns : index  %turned = lacis.walk %p : !p to !turned  %lists = lacis.balance #lacis.tile_schedule<columns = 1, swizzle_group = 1, cost = #cost> of %turned over %heads : !turned to !lists
    %workers = tensor.dim %lists, %c0 : !lists
    lacis.loop "n" %n to %workers {
      %qring = lacis.ring : !qring  %dring = lacis.ring : !dring  %vring = lacis.ring : !vring
      lacis.roles producer {
        %end:3 = lacis.level_loop "j0" %lists[1] at %n (%at, %j0) iter(%q0 = %qring, %d0 = %dring, %v0 = %vring) -> (!qring, !dring, !vring) : !lists {
          %e:3 = lacis.level_loop "h" %lists[2] at %at (%x, %h) iter(%q1 = %q0, %d1 = %d0, %v1 = %v0) -> (!qring, !dring, !vring) : !lists {
            %left = arith.muli %h, %columns : index  %j = arith.muli %j0, %c128 : index  %own = arith.addi %left, %j : index
            %under = arith.addi %own, %c64 : index  %vown = arith.addi %all, %own : index  %vunder = arith.addi %all, %under : index  %kt, %kl = lacis.acquire %q1 : !qring -> !tile, !line  lacis.load_tile %kv[%own, %c0] to %kt : !x[index, index] to !tile
            %q2 = lacis.release %q1 : !qring  %ku, %km = lacis.acquire %q2 : !qring -> !tile, !line
            lacis.load_tile %kv[%under, %c0] to %ku : !x[index, index] to !tile  %q3 = lacis.release %q2 : !qring
            %vt = lacis.acquire %v1 : !vring -> !four  %c3 = arith.constant 3 : index
            lacis.load_tile %kv[%vown, %c0] to %vt[%c0 : index] : !x[index, index] to !four  lacis.load_tile %kv[%vown, %c64] to %vt[%c1 : index] : !x[index, index] to !four
            lacis.load_tile %kv[%vunder, %c0] to %vt[%c2 : index] : !x[index, index] to !four  lacis.load_tile %kv[%vunder, %c64] to %vt[%c3 : index] : !x[index, index] to !four
            %v2 = lacis.release %v1 : !vring  %top = arith.muli %h, %rows : index
            %qd:2 = lacis.level_loop "i0" %turned[1] at %j0 (%slot, %i0) iter(%q4 = %q3, %d2 = %d1) -> (!qring, !dring) : !turned {
              %below = arith.muli %i0, %c128 : index  %block = arith.addi %top, %below : index
              %half:2 = lacis.loop "half" %step to %c2 iter(%q5 = %q4, %d3 = %d2) -> (!qring, !dring) {
                %within = arith.muli %step, %c64 : index  %i = arith.addi %block, %within : index  %qt, %ql = lacis.acquire %q5 : !qring -> !tile, !line  lacis.load_tile %q[%i, %c0] to %qt : !x[index, index] to !tile
                lacis.load_tile %start[%i] to %ql : !vector[index] to !line  %q6 = lacis.release %q5 : !qring  %dt, %dl = lacis.acquire %d3 : !dring -> !tile, !line  lacis.load_tile %dy[%i, %c0] to %dt : !x[index, index] to !tile
                lacis.load_tile %less[%i] to %dl : !vector[index] to !line  %d4 = lacis.release %d3 : !dring  lacis.yield %q6, %d4 : !qring, !dring
              }
              lacis.yield %half#0, %half#1 : !qring, !dring
            }
            lacis.yield %qd#0, %qd#1, %v2 : !qring, !dring, !vring
          }
          lacis.yield %e#0, %e#1, %e#2 : !qring, !dring, !vring
        }
        lacis.yield
      } consumers 2 (%c : index) {
        %zero = lacis.splat %f0 : f32 to !o  %isFirst = arith.cmpi eq, %c, %c0 : index  %down = arith.muli %c, %c64 : index  %mine = arith.muli %c, %c2 : index
        %end:3 = lacis.level_loop "j0" %lists[1] at %n (%at, %j0) iter(%q0 = %qring, %d0 = %dring, %v0 = %vring) -> (!qring, !dring, !vring) : !lists {
          %e:3 = lacis.level_loop "h" %lists[2] at %at (%x, %h) iter(%q1 = %q0, %d1 = %d0, %v1 = %v0) -> (!qring, !dring, !vring) : !lists {
            %left = arith.muli %h, %columns : index  %j = arith.muli %j0, %c128 : index  %block = arith.addi %left, %j : index
            %own = arith.addi %block, %down : index
            %kt, %kl = lacis.acquire %q1 : !qring -> !tile, !line  %ka = lacis.read_tile %kt : !tile to !held  %q2 = lacis.release %q1 : !qring  %ku, %km = lacis.acquire %q2 : !qring -> !tile, !line
            %kh = scf.if %isFirst -> (!held) { scf.yield %ka : !held } else { %kb = lacis.read_tile %ku : !tile to !held  scf.yield %kb : !held }
            %q3 = lacis.release %q2 : !qring
            %lo, %hi = lacis.bounds %turned[1] at %j0 : !turned  %count = arith.subi %hi, %lo : index  %steps = arith.muli %count, %c2 : index  %more = arith.subi %steps, %c1 : index  %some = arith.cmpi ugt, %hi, %lo : index
            %places:3 = scf.if %some -> (!qring, !dring, !vring) {
              %qt, %ql = lacis.acquire %q3 : !qring -> !tile, !line  %s0 = lacis.read_columns %ql : !line to !s
              %x0 = lacis.mma %kh, %qt into %s0 : !held, !tile into !s  %s = lacis.complete %x0 : !s -> !s
              %p1 = lacis.map %s { ^bb0(%a: f32): %u = arith.mulf %a, %scale : f32 %w = math.exp2 %u fastmath<afn> : f32 %t = arith.truncf %w : f32 to bf16 lacis.yield %t : bf16 } : !s -> !e
              %vt = lacis.acquire %v1 : !vring -> !four  %q4 = lacis.advance %q3 : !qring
              %qk, %q7, %d5, %p2, %dk, %dv = lacis.loop "i0" %i0 to %more iter(%qh = %q3, %q5 = %q4, %d3 = %d1, %p0 = %p1, %dk0 = %zero, %dv0 = %zero) -> (!qring, !qring, !dring, !e, !o, !o) {
                %dt, %dl = lacis.acquire %d3 : !dring -> !tile, !line  %t0 = lacis.read_columns %dl : !line to !s
                %x1 = lacis.mma %vt[%mine : index], %dt into %t0 : !four, !tile into !s
                %x2 = lacis.mma %p0, %dt[%c0 : index] transposed into %dv0 : !e, !tile into !o  %t1 = lacis.complete %x1 : !s -> !s
                %ds1 = lacis.map %p0, %t1 { ^bb0(%a: bf16, %b: f32): %t = arith.extf %a : bf16 to f32 %u = arith.mulf %t, %b : f32 lacis.yield %u : f32 } : !e, !s -> !s
                %dv1 = lacis.complete %x2 : !o -> !o  %d4 = lacis.release %d3 : !dring
                %ds = lacis.map %ds1 { ^bb0(%a: f32): %t = arith.truncf %a : f32 to bf16 lacis.yield %t : bf16 } : !s -> !e
                %qn, %qm = lacis.acquire %q5 : !qring -> !tile, !line  %s1 = lacis.read_columns %qm : !line to !s
                %x3 = lacis.mma %kh, %qn into %s1 : !held, !tile into !s  %qb, %qc = lacis.revisit %qh : !qring -> !tile, !line
                %x4 = lacis.mma %ds, %qb[%c0 : index] transposed into %dk0 : !e, !tile into !o  %s2 = lacis.complete %x3 : !s -> !s
                %p3 = lacis.map %s2 { ^bb0(%a: f32): %u = arith.mulf %a, %scale : f32 %w = math.exp2 %u fastmath<afn> : f32 lacis.yield %w : f32 } : !s -> !s
                %dk1 = lacis.complete %x4 : !o -> !o  %free = lacis.release %qh : !qring  %q6 = lacis.advance %q5 : !qring
                %p4 = lacis.map %p3 { ^bb0(%a: f32): %t = arith.truncf %a : f32 to bf16 lacis.yield %t : bf16 } : !s -> !e
                lacis.yield %q5, %q6, %d4, %p4, %dk1, %dv1 : !qring, !qring, !dring, !e, !o, !o
              }
              %dt, %dl = lacis.acquire %d5 : !dring -> !tile, !line  %t0 = lacis.read_columns %dl : !line to !s
              %x1 = lacis.mma %vt[%mine : index], %dt into %t0 : !four, !tile into !s
              %x2 = lacis.mma %p2, %dt[%c0 : index] transposed into %dv : !e, !tile into !o  %t1 = lacis.complete %x1 : !s -> !s
              %ds1 = lacis.map %p2, %t1 { ^bb0(%a: bf16, %b: f32): %t = arith.extf %a : bf16 to f32 %u = arith.mulf %t, %b : f32 lacis.yield %u : f32 } : !e, !s -> !s
              %dv1 = lacis.complete %x2 : !o -> !o  %d6 = lacis.release %d5 : !dring
              %ds = lacis.map %ds1 { ^bb0(%a: f32): %t = arith.truncf %a : f32 to bf16 lacis.yield %t : bf16 } : !s -> !e
              %v2 = lacis.release %v1 : !vring  %qb, %qc = lacis.revisit %qk : !qring -> !tile, !line  %x3 = lacis.mma %ds, %qb[%c0 : index] transposed into %dk : !e, !tile into !o  %dk1 = lacis.complete %x3 : !o -> !o  %free = lacis.release %qk : !qring
              %under = arith.addi %all, %own : index  lacis.store_tile %dv1 to %dkv[%under, %c0] : !o to !x[index, index]
              %scaled = lacis.map %dk1 { ^bb0(%a: f32): %t = arith.mulf %a, %root : f32 lacis.yield %t : f32 } : !o -> !o
              lacis.store_tile %scaled to %dkv[%own, %c0] : !o to !x[index, index]
              scf.yield %q7, %d6, %v2 : !qring, !dring, !vring
            } else {
              %vt = lacis.acquire %v1 : !vring -> !four  %v2 = lacis.release %v1 : !vring
              %under = arith.addi %all, %own : index  lacis.store_tile %zero to %dkv[%under, %c0] : !o to !x[index, index]
              lacis.store_tile %zero to %dkv[%own, %c0] : !o to !x[index, index]
              scf.yield %q3, %d1, %v2 : !qring, !dring, !vring
            }
            lacis.yield %places#0, %places#1, %places#2 : !qring, !dring, !vring
          }
          lacis.yield %e#0, %e#1, %e#2 : !qring, !dring, !vring
        }
        lacis.yield
      }
      lacis.yield
    } bind<block.x>
    return
  }
}
