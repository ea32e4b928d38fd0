// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// RUN: lacis-compile %s --target=cpu --emit=target -o - | FileCheck %s --check-prefix=PLAIN
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 0, 1, 1, 0;
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 1;
// PLAIN: scf.while
// The gradient of attention128 with respect to q: dq = ds k / sqrt(128), where p = exp(q kT / sqrt(128) - lse) and
// ds = p (dy vT - delta). lse is the logarithm of a row's sum of exponentials, delta its sum of dy y. Rows of q come
// by the ring of k, those of dy by the ring of v, and stay in registers. A row without blocks is 0. The scores
// of a round and dy vT are multiplied beside dq of the round before, whose place in the ring of k is kept beyond the next
// one. Two consumers have 64 rows each, and a block is walked in two steps of 64 columns.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 128 : compressed, i mod 128 : dense, j mod 128 : dense)>
#lists = #lacis.format<(n, i, h) -> (n : dense, i : compressed<unique=false>, h : singleton)>
!p = tensor<?x?xbf16, #bsr>  !lists = tensor<?x?x?xi1, #lists>
!x = tensor<?x?xbf16>  !vector = tensor<?xf32>
!tile = !lacis.tile<2x64x64xbf16>
!ring = !lacis.ring<6, <2x64x64xbf16>>
!held = !lacis.acc<64x128xbf16>  !row = !lacis.acc<64x1xf32>
!s = !lacis.acc<64x64xf32>  !e = !lacis.acc<64x64xbf16>  !o = !lacis.acc<64x128xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @grad_query(%p: !p {lacis.name = "p", lacis.axes = ["i", "j"]}, %q: !x {lacis.name = "q", lacis.axes = ["r", "d"]},
                        %k: !x {lacis.name = "k", lacis.axes = ["s", "d"]}, %v: !x {lacis.name = "v", lacis.axes = ["s", "e"]},
                        %dy: !x {lacis.name = "dy", lacis.axes = ["r", "e"]}, %lse: !vector {lacis.name = "lse", lacis.axes = ["r"]},
                        %delta: !vector {lacis.name = "delta", lacis.axes = ["r"]},
                        %dq: !x {lacis.name = "dq", lacis.axes = ["r", "d"], lacis.output}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index  %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index  %cB = arith.constant 128 : index  %f0 = arith.constant 0.0 : f32  %log2e = arith.constant 1.44269504 : f32
    %scale = arith.constant 0.12751743 : f32 // log2 e, by the root of 128
    %root = arith.constant 0.08838835 : f32 // 1 by the root of 128
    %all = tensor.dim %q, %c0 : !x  %rows = tensor.dim %p, %c0 : !p  %columns = tensor.dim %p, %c1 : !p
    %heads = arith.ceildivui %all, %rows : index
    %lists = lacis.balance #lacis.tile_schedule<columns = 1, swizzle_group = 1, cost = #cost> of %p over %heads : !p to !lists
    %workers = tensor.dim %lists, %c0 : !lists
    lacis.loop "n" %n to %workers {
      %kring = lacis.ring : !ring  %vring = lacis.ring : !ring
      lacis.roles producer {
        %end:2 = lacis.level_loop "i0" %lists[1] at %n (%at, %i0) iter(%k0 = %kring, %v0 = %vring) -> (!ring, !ring) : !lists {
          %e:2 = lacis.level_loop "h" %lists[2] at %at (%x, %h) iter(%k1 = %k0, %v1 = %v0) -> (!ring, !ring) : !lists {
            %top = arith.muli %h, %rows : index  %i = arith.muli %i0, %cB : index  %row = arith.addi %top, %i : index  %under = arith.addi %row, %c64 : index
            %qt = lacis.acquire %k1 : !ring -> !tile  lacis.load_tile %q[%row, %c0] to %qt : !x[index, index] to !tile
            %k2 = lacis.release %k1 : !ring  %qu = lacis.acquire %k2 : !ring -> !tile
            lacis.load_tile %q[%under, %c0] to %qu : !x[index, index] to !tile  %k3 = lacis.release %k2 : !ring
            %dt = lacis.acquire %v1 : !ring -> !tile  lacis.load_tile %dy[%row, %c0] to %dt : !x[index, index] to !tile
            %v2 = lacis.release %v1 : !ring  %du = lacis.acquire %v2 : !ring -> !tile
            lacis.load_tile %dy[%under, %c0] to %du : !x[index, index] to !tile  %v3 = lacis.release %v2 : !ring
            %left = arith.muli %h, %columns : index
            %kv:2 = lacis.level_loop "j0" %p[1] at %i0 (%slot, %j0) iter(%k4 = %k3, %v4 = %v3) -> (!ring, !ring) : !p {
              %below = arith.muli %j0, %cB : index  %block = arith.addi %left, %below : index
              %half:2 = lacis.loop "half" %step to %c2 iter(%k5 = %k4, %v5 = %v4) -> (!ring, !ring) {
                %within = arith.muli %step, %c64 : index  %j = arith.addi %block, %within : index  %kt = lacis.acquire %k5 : !ring -> !tile  lacis.load_tile %k[%j, %c0] to %kt : !x[index, index] to !tile
                %k6 = lacis.release %k5 : !ring  %vt = lacis.acquire %v5 : !ring -> !tile
                lacis.load_tile %v[%j, %c0] to %vt : !x[index, index] to !tile  %v6 = lacis.release %v5 : !ring
                lacis.yield %k6, %v6 : !ring, !ring
              }
              lacis.yield %half#0, %half#1 : !ring, !ring
            }
            lacis.yield %kv#0, %kv#1 : !ring, !ring
          }
          lacis.yield %e#0, %e#1 : !ring, !ring
        }
        lacis.yield
      } consumers 2 (%c : index) {
        %zero = lacis.splat %f0 : f32 to !o  %isUpper = arith.cmpi eq, %c, %c0 : index
        %down = arith.muli %c, %c64 : index
        %end:2 = lacis.level_loop "i0" %lists[1] at %n (%at, %i0) iter(%k0 = %kring, %v0 = %vring) -> (!ring, !ring) : !lists {
          %e:2 = lacis.level_loop "h" %lists[2] at %at (%x, %h) iter(%k1 = %k0, %v1 = %v0) -> (!ring, !ring) : !lists {
            %top = arith.muli %h, %rows : index  %i = arith.muli %i0, %cB : index  %own = arith.addi %top, %i : index  %row = arith.addi %own, %down : index
            %l = lacis.load_rows %lse[%row] : !vector[index] to !row
            %l2 = lacis.map %l { ^bb0(%a: f32): %t = arith.mulf %a, %log2e : f32 %u = arith.negf %t : f32 lacis.yield %u : f32 } : !row -> !row
            %m = lacis.load_rows %delta[%row] : !vector[index] to !row
            %qt = lacis.acquire %k1 : !ring -> !tile  %qa = lacis.read_tile %qt : !tile to !held  %k2 = lacis.release %k1 : !ring  %qu = lacis.acquire %k2 : !ring -> !tile
            %qh = scf.if %isUpper -> (!held) { scf.yield %qa : !held } else { %qb = lacis.read_tile %qu : !tile to !held  scf.yield %qb : !held }
            %k3 = lacis.release %k2 : !ring
            %dt = lacis.acquire %v1 : !ring -> !tile  %da = lacis.read_tile %dt : !tile to !held  %v2 = lacis.release %v1 : !ring  %du = lacis.acquire %v2 : !ring -> !tile
            %dh = scf.if %isUpper -> (!held) { scf.yield %da : !held } else { %db = lacis.read_tile %du : !tile to !held  scf.yield %db : !held }
            %v3 = lacis.release %v2 : !ring
            %lo, %hi = lacis.bounds %p[1] at %i0 : !p  %count = arith.subi %hi, %lo : index  %steps = arith.muli %count, %c2 : index  %more = arith.subi %steps, %c1 : index  %some = arith.cmpi ugt, %hi, %lo : index
            %places:2 = scf.if %some -> (!ring, !ring) {
              %kt = lacis.acquire %k3 : !ring -> !tile  %x0 = lacis.mma %qh, %kt : !held, !tile into !s
              %vt = lacis.acquire %v3 : !ring -> !tile  %x1 = lacis.mma %dh, %vt : !held, !tile into !s
              %s = lacis.complete %x0 : !s -> !s
              %p1 = lacis.map %s, %l2 { ^bb0(%a: f32, %d: f32): %u = math.fma %a, %scale, %d : f32 %w = math.exp2 %u fastmath<afn> : f32 lacis.yield %w : f32 } : !s, !row -> !s
              %t1 = lacis.complete %x1 : !s -> !s  %v4 = lacis.release %v3 : !ring  %k4 = lacis.advance %k3 : !ring
              %ds1 = lacis.map %p1, %t1, %m { ^bb0(%a: f32, %b: f32, %d: f32): %t = arith.subf %b, %d : f32 %u = arith.mulf %a, %t : f32 %w = arith.truncf %u : f32 to bf16 lacis.yield %w : bf16 } : !s, !s, !row -> !e
              %kl, %k8, %v6, %ds2, %o = lacis.loop "j0" %j0 to %more iter(%kh = %k3, %k6 = %k4, %v5 = %v4, %ds0 = %ds1, %o0 = %zero) -> (!ring, !ring, !ring, !e, !o) {
                %kn = lacis.acquire %k6 : !ring -> !tile  %x2 = lacis.mma %qh, %kn : !held, !tile into !s
                %vn = lacis.acquire %v5 : !ring -> !tile  %x3 = lacis.mma %dh, %vn : !held, !tile into !s
                %kb = lacis.revisit %kh : !ring -> !tile  %x4 = lacis.mma %ds0, %kb[%c0 : index] transposed into %o0 : !e, !tile into !o
                %s1 = lacis.complete %x2 : !s -> !s
                %p2 = lacis.map %s1, %l2 { ^bb0(%a: f32, %d: f32): %u = math.fma %a, %scale, %d : f32 %w = math.exp2 %u fastmath<afn> : f32 lacis.yield %w : f32 } : !s, !row -> !s
                %t2 = lacis.complete %x3 : !s -> !s  %v7 = lacis.release %v5 : !ring
                %ds3 = lacis.map %p2, %t2, %m { ^bb0(%a: f32, %b: f32, %d: f32): %t = arith.subf %b, %d : f32 %u = arith.mulf %a, %t : f32 lacis.yield %u : f32 } : !s, !s, !row -> !s
                %o1 = lacis.complete %x4 : !o -> !o  %free = lacis.release %kh : !ring  %k7 = lacis.advance %k6 : !ring
                %ds4 = lacis.map %ds3 { ^bb0(%a: f32): %t = arith.truncf %a : f32 to bf16 lacis.yield %t : bf16 } : !s -> !e
                lacis.yield %k6, %k7, %v7, %ds4, %o1 : !ring, !ring, !ring, !e, !o
              }
              %kb = lacis.revisit %kl : !ring -> !tile  %x4 = lacis.mma %ds2, %kb[%c0 : index] transposed into %o : !e, !tile into !o
              %o1 = lacis.complete %x4 : !o -> !o  %free = lacis.release %kl : !ring
              %result = lacis.map %o1 { ^bb0(%a: f32): %t = arith.mulf %a, %root : f32 lacis.yield %t : f32 } : !o -> !o
              lacis.store_tile %result to %dq[%row, %c0] : !o to !x[index, index]
              scf.yield %k8, %v6 : !ring, !ring
            } else {
              lacis.store_tile %zero to %dq[%row, %c0] : !o to !x[index, index]
              scf.yield %k3, %v3 : !ring, !ring
            }
            lacis.yield %places#0, %places#1 : !ring, !ring
          }
          lacis.yield %e#0, %e#1 : !ring, !ring
        }
        lacis.yield
      }
      lacis.yield
    } bind<block.x>
    return
  }
}
