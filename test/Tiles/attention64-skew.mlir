// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// RUN: lacis-compile %s --target=cpu --emit=target -o - | FileCheck %s --check-prefix=PLAIN
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 0, 1, 1, 0, 0;
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 1;
// PLAIN: scf.while
// y = softmax(q kT / sqrt(128)) v on the stored blocks of p, head by head: rows of q, k, v and y are those of one head after
// another, a multiple of 64 each. A row without blocks is 0. Two groups share a processor; each has lists, rings and a
// consumer of its own. The scores of a round are multiplied beside
// the values of the round before.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#lists = #lacis.format<(n, i, h) -> (n : dense, i : compressed<unique=false>, h : singleton)>
!p = tensor<?x?xbf16, #bsr>
!lists = tensor<?x?x?xi1, #lists>
!x = tensor<?x?xbf16>
!q = !lacis.tile<2x64x64xbf16>  !kv = !lacis.tile<2x64x64xbf16>
!qring = !lacis.ring<2, <2x64x64xbf16>>
!kring = !lacis.ring<3, <2x64x64xbf16>>
!vring = !lacis.ring<2, <2x64x64xbf16>>
!s = !lacis.acc<64x64xf32>  !e = !lacis.acc<64x64xbf16>  !o = !lacis.acc<64x128xf32>
!row = !lacis.acc<64x1xf32>  !parts = !lacis.acc<64x4xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @attention(%p: !p {lacis.name = "p", lacis.axes = ["i", "j"]}, %q: !x {lacis.name = "q", lacis.axes = ["r", "d"]},
                       %k: !x {lacis.name = "k", lacis.axes = ["s", "d"]}, %v: !x {lacis.name = "v", lacis.axes = ["s", "e"]},
                       %y: !x {lacis.name = "y", lacis.axes = ["r", "e"], lacis.output}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index  %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index  %f0 = arith.constant 0.0 : f32  %f1 = arith.constant 1.0 : f32
    %inf = arith.constant 0xFF800000 : f32
    %scale = arith.constant 0.12751743 : f32 // log2 e, by the root of 128
    %all = tensor.dim %q, %c0 : !x  %rows = tensor.dim %p, %c0 : !p  %columns = tensor.dim %p, %c1 : !p
    %heads = arith.ceildivui %all, %rows : index
    %lists = lacis.balance #lacis.tile_schedule<columns = 1, swizzle_group = 1, cost = #cost> of %p over %heads : !p to !lists
    %workers = tensor.dim %lists, %c0 : !lists  %blocks = arith.ceildivui %workers, %c2 : index
    lacis.loop "n" %n to %blocks {
      %both = arith.muli %n, %c2 : index  %qring = lacis.ring : !qring  %kring = lacis.ring : !kring
      %vring = lacis.ring : !vring
      lacis.roles groups 2 producer (%g : index) {
        %mine = arith.addi %both, %g : index
        %end:3 = lacis.level_loop "i0" %lists[1] at %mine (%at, %i0) iter(%q0 = %qring, %k0 = %kring, %v0 = %vring) -> (!qring, !kring, !vring) : !lists {
          %e:3 = lacis.level_loop "h" %lists[2] at %at (%x, %h) iter(%q1 = %q0, %k1 = %k0, %v1 = %v0) -> (!qring, !kring, !vring) : !lists {
            %top = arith.muli %h, %rows : index  %i = arith.muli %i0, %c64 : index  %row = arith.addi %top, %i : index
            %qt = lacis.acquire %q1 : !qring -> !q  lacis.load_tile %q[%row, %c0] to %qt : !x[index, index] to !q
            %q2 = lacis.release %q1 : !qring  %left = arith.muli %h, %columns : index
            %kv:2 = lacis.level_loop "j0" %p[1] at %i0 (%slot, %j0) iter(%k2 = %k1, %v2 = %v1) -> (!kring, !vring) : !p {
              %below = arith.muli %j0, %c64 : index  %j = arith.addi %left, %below : index
              %kt = lacis.acquire %k2 : !kring -> !kv  lacis.load_tile %k[%j, %c0] to %kt : !x[index, index] to !kv
              %k3 = lacis.release %k2 : !kring  %vt = lacis.acquire %v2 : !vring -> !kv
              lacis.load_tile %v[%j, %c0] to %vt : !x[index, index] to !kv  %v3 = lacis.release %v2 : !vring
              lacis.yield %k3, %v3 : !kring, !vring
            }
            lacis.yield %q2, %kv#0, %kv#1 : !qring, !kring, !vring
          }
          lacis.yield %e#0, %e#1, %e#2 : !qring, !kring, !vring
        }
        lacis.yield
      } consumers 1 (%c : index, %g : index) {
        %none = lacis.splat %inf : f32 to !row  %zeros = lacis.splat %f0 : f32 to !parts
        %zero = lacis.splat %f0 : f32 to !o  %mine = arith.addi %both, %g : index
        %end:3 = lacis.level_loop "i0" %lists[1] at %mine (%at, %i0) iter(%q0 = %qring, %k0 = %kring, %v0 = %vring) -> (!qring, !kring, !vring) : !lists {
          %e:3 = lacis.level_loop "h" %lists[2] at %at (%x, %h) iter(%q1 = %q0, %k1 = %k0, %v1 = %v0) -> (!qring, !kring, !vring) : !lists {
            %top = arith.muli %h, %rows : index  %i = arith.muli %i0, %c64 : index  %row = arith.addi %top, %i : index
            %lo, %hi = lacis.bounds %p[1] at %i0 : !p  %count = arith.subi %hi, %lo : index
            %more = arith.subi %count, %c1 : index  %some = arith.cmpi ugt, %hi, %lo : index
            %places:3 = scf.if %some -> (!qring, !kring, !vring) {
              %qt = lacis.acquire %q1 : !qring -> !q  %kt = lacis.acquire %k1 : !kring -> !kv
              %x0 = lacis.mma %qt, %kt : !q, !kv into !s  %s = lacis.complete %x0 : !s -> !s
              %k2 = lacis.release %k1 : !kring  %m1 = lacis.reduce_rows "max" %s onto %none : !s -> !row
              %ms = lacis.map %m1 { ^bb0(%a: f32): %is = arith.cmpf oeq, %a, %inf : f32 %t = arith.mulf %a, %scale : f32 %u = arith.select %is, %f0, %t : f32 lacis.yield %u : f32 } : !row -> !row
              %e1 = lacis.map %s, %ms { ^bb0(%a: f32, %d: f32):
                %minus = arith.negf %d : f32 %u = math.fma %a, %scale, %minus : f32 %w = math.exp2 %u fastmath<afn> : f32 lacis.yield %w : f32 } : !s, !row -> !s
              %l1 = lacis.reduce_rows "sum" %e1 : !s -> !parts
              %b1 = lacis.map %e1 { ^bb0(%a: f32): %t = arith.truncf %a : f32 to bf16 lacis.yield %t : bf16 } : !s -> !e
              %k5, %v5, %m, %l, %b, %o = lacis.loop "j0" %j0 to %more iter(%k3 = %k2, %v3 = %v1, %m0 = %m1, %l0 = %l1, %b0 = %b1, %o0 = %zero) -> (!kring, !vring, !row, !parts, !e, !o) {
                %ktn = lacis.acquire %k3 : !kring -> !kv  %x0n = lacis.mma %qt, %ktn : !q, !kv into !s
                %vtn = lacis.acquire %v3 : !vring -> !kv
                %x1n = lacis.mma %b0, %vtn[%c0 : index] transposed into %o0 : !e, !kv into !o
                %sn = lacis.complete %x0n : !s -> !s  %k4 = lacis.release %k3 : !kring
                %m1n = lacis.reduce_rows "max" %sn onto %m0 : !s -> !row
                %msn = lacis.map %m1n { ^bb0(%a: f32):
                  %is = arith.cmpf oeq, %a, %inf : f32 %t = arith.mulf %a, %scale : f32 %u = arith.select %is, %f0, %t : f32 lacis.yield %u : f32 } : !row -> !row
                %e1n = lacis.map %sn, %msn { ^bb0(%a: f32, %d: f32):
                  %minus = arith.negf %d : f32 %u = math.fma %a, %scale, %minus : f32 %w = math.exp2 %u fastmath<afn> : f32 lacis.yield %w : f32 } : !s, !row -> !s
                %fade = lacis.map %m0, %msn { ^bb0(%a: f32, %d: f32):
                  %t = arith.mulf %a, %scale : f32 %u = arith.subf %t, %d : f32 %w = math.exp2 %u fastmath<afn> : f32 lacis.yield %w : f32 } : !row, !row -> !row
                %lf = lacis.map %l0, %fade { ^bb0(%a: f32, %d: f32): %t = arith.mulf %a, %d : f32 lacis.yield %t : f32 } : !parts, !row -> !parts
                %l1n = lacis.reduce_rows "sum" %e1n onto %lf : !s -> !parts  %o1n = lacis.complete %x1n : !o -> !o
                %v4 = lacis.release %v3 : !vring
                %b1n = lacis.map %e1n { ^bb0(%a: f32): %t = arith.truncf %a : f32 to bf16 lacis.yield %t : bf16 } : !s -> !e
                %o2 = lacis.map %o1n, %fade { ^bb0(%a: f32, %d: f32): %t = arith.mulf %a, %d : f32 lacis.yield %t : f32 } : !o, !row -> !o
                lacis.yield %k4, %v4, %m1n, %l1n, %b1n, %o2 : !kring, !vring, !row, !parts, !e, !o
              }
              %vt = lacis.acquire %v5 : !vring -> !kv
              %x1 = lacis.mma %b, %vt[%c0 : index] transposed into %o : !e, !kv into !o  %o1 = lacis.complete %x1 : !o -> !o
              %v6 = lacis.release %v5 : !vring  %sum = lacis.reduce_rows "sum" %l : !parts -> !row
              %part = lacis.map %sum { ^bb0(%a: f32): %is = arith.cmpf oeq, %a, %f0 : f32 %t = arith.divf %f1, %a : f32 %u = arith.select %is, %f0, %t : f32 lacis.yield %u : f32 } : !row -> !row
              %result = lacis.map %o1, %part { ^bb0(%a: f32, %d: f32): %t = arith.mulf %a, %d : f32 lacis.yield %t : f32 } : !o, !row -> !o
              lacis.store_tile %result to %y[%row, %c0] through %qt : !q : !o to !x[index, index]
              %q2 = lacis.release %q1 : !qring
              scf.yield %q2, %k5, %v6 : !qring, !kring, !vring
            } else {
              %qt = lacis.acquire %q1 : !qring -> !q
              lacis.store_tile %zero to %y[%row, %c0] through %qt : !q : !o to !x[index, index]
              %q2 = lacis.release %q1 : !qring
              scf.yield %q2, %k1, %v1 : !qring, !kring, !vring
            }
            lacis.yield %places#0, %places#1, %places#2 : !qring, !kring, !vring
          }
          lacis.yield %e#0, %e#1, %e#2 : !qring, !kring, !vring
        }
        lacis.yield
      }
      lacis.yield
    } bind<block.x>
    return
  }
}
