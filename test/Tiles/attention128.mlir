// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// RUN: lacis-compile %s --target=cpu --emit=target -o - | FileCheck %s --check-prefix=PLAIN
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, 0, 1, 1, 0, 0;
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, 1, 1, 1, 1;
// PLAIN: scf.while
// y = softmax(q kT / sqrt(128)) v on the stored blocks of p, head by head: rows of q, k, v and y are those of one head after
// another, a multiple of 128 each. A row without blocks is 0. Two consumers have 64 rows each. One round after
// the other: nothing overlaps.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 128 : compressed, i mod 128 : dense, j mod 128 : dense)>
#lists = #lacis.format<(n, i, h) -> (n : dense, i : compressed<unique=false>, h : singleton)>
!p = tensor<?x?xbf16, #bsr>
!lists = tensor<?x?x?xi1, #lists>
!x = tensor<?x?xbf16>
!q = !lacis.tile<4x64x64xbf16>  !kv = !lacis.tile<2x128x64xbf16>
!qring = !lacis.ring<2, <4x64x64xbf16>>
!kring = !lacis.ring<3, <2x128x64xbf16>>
!vring = !lacis.ring<2, <2x128x64xbf16>>
!s = !lacis.acc<64x128xf32>  !e = !lacis.acc<64x128xbf16>  !o = !lacis.acc<64x128xf32>
!row = !lacis.acc<64x1xf32>  !parts = !lacis.acc<64x4xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @attention(%p: !p {lacis.name = "p", lacis.axes = ["i", "j"]}, %q: !x {lacis.name = "q", lacis.axes = ["r", "d"]},
                       %k: !x {lacis.name = "k", lacis.axes = ["s", "d"]}, %v: !x {lacis.name = "v", lacis.axes = ["s", "e"]},
                       %y: !x {lacis.name = "y", lacis.axes = ["r", "e"], lacis.output}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index  %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index  %c64 = arith.constant 64 : index  %cB = arith.constant 128 : index
    %f0 = arith.constant 0.0 : f32  %f1 = arith.constant 1.0 : f32  %inf = arith.constant 0xFF800000 : f32
    %scale = arith.constant 0.12751743 : f32 // log2 e, by the root of 128
    %all = tensor.dim %q, %c0 : !x  %rows = tensor.dim %p, %c0 : !p  %columns = tensor.dim %p, %c1 : !p
    %heads = arith.ceildivui %all, %rows : index
    %lists = lacis.balance #lacis.tile_schedule<columns = 1, swizzle_group = 1, cost = #cost> of %p over %heads : !p to !lists
    %workers = tensor.dim %lists, %c0 : !lists
    lacis.loop "n" %n to %workers {
      %qring = lacis.ring : !qring  %kring = lacis.ring : !kring  %vring = lacis.ring : !vring
      lacis.roles producer {
        %end:3 = lacis.level_loop "i0" %lists[1] at %n (%at, %i0) iter(%q0 = %qring, %k0 = %kring, %v0 = %vring) -> (!qring, !kring, !vring) : !lists {
          %e:3 = lacis.level_loop "h" %lists[2] at %at (%x, %h) iter(%q1 = %q0, %k1 = %k0, %v1 = %v0) -> (!qring, !kring, !vring) : !lists {
            %top = arith.muli %h, %rows : index  %i = arith.muli %i0, %cB : index  %row = arith.addi %top, %i : index
            %qt = lacis.acquire %q1 : !qring -> !q  %lower = arith.addi %row, %c64 : index
            lacis.load_tile %q[%row, %c0] to %qt[%c0 : index] : !x[index, index] to !q
            lacis.load_tile %q[%row, %c64] to %qt[%c1 : index] : !x[index, index] to !q
            lacis.load_tile %q[%lower, %c0] to %qt[%c2 : index] : !x[index, index] to !q
            lacis.load_tile %q[%lower, %c64] to %qt[%c3 : index] : !x[index, index] to !q  %q2 = lacis.release %q1 : !qring
            %left = arith.muli %h, %columns : index
            %kv:2 = lacis.level_loop "j0" %p[1] at %i0 (%slot, %j0) iter(%k2 = %k1, %v2 = %v1) -> (!kring, !vring) : !p {
              %below = arith.muli %j0, %cB : index  %j = arith.addi %left, %below : index
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
      } consumers 2 (%c : index) {
        %none = lacis.splat %inf : f32 to !row  %zeros = lacis.splat %f0 : f32 to !parts
        %zero = lacis.splat %f0 : f32 to !o  %first = arith.muli %c, %c2 : index  %down = arith.muli %c, %c64 : index
        %end:3 = lacis.level_loop "i0" %lists[1] at %n (%at, %i0) iter(%q0 = %qring, %k0 = %kring, %v0 = %vring) -> (!qring, !kring, !vring) : !lists {
          %e:3 = lacis.level_loop "h" %lists[2] at %at (%x, %h) iter(%q1 = %q0, %k1 = %k0, %v1 = %v0) -> (!qring, !kring, !vring) : !lists {
            %top = arith.muli %h, %rows : index  %i = arith.muli %i0, %cB : index  %own = arith.addi %top, %i : index
            %row = arith.addi %own, %down : index  %qt = lacis.acquire %q1 : !qring -> !q
            %k4, %v4, %m, %l, %o = lacis.level_loop "j0" %p[1] at %i0 (%slot, %j0) iter(%k2 = %k1, %v2 = %v1, %m0 = %none, %l0 = %zeros, %o0 = %zero) -> (!kring, !vring, !row, !parts, !o) : !p {
              %kt = lacis.acquire %k2 : !kring -> !kv  %x0 = lacis.mma %qt[%first : index], %kt : !q, !kv into !s
              %s = lacis.complete %x0 : !s -> !s  %k3 = lacis.release %k2 : !kring
              %m1 = lacis.reduce_rows "max" %s onto %m0 : !s -> !row
              %ms = lacis.map %m1 { ^bb0(%a: f32): %is = arith.cmpf oeq, %a, %inf : f32 %t = arith.mulf %a, %scale : f32 %u = arith.select %is, %f0, %t : f32 lacis.yield %u : f32 } : !row -> !row
              %e1 = lacis.map %s, %ms { ^bb0(%a: f32, %d: f32):
                %minus = arith.negf %d : f32 %u = math.fma %a, %scale, %minus : f32 %w = math.exp2 %u fastmath<afn> : f32 lacis.yield %w : f32 } : !s, !row -> !s
              %fade = lacis.map %m0, %ms { ^bb0(%a: f32, %d: f32):
                %t = arith.mulf %a, %scale : f32 %u = arith.subf %t, %d : f32 %w = math.exp2 %u fastmath<afn> : f32 lacis.yield %w : f32 } : !row, !row -> !row
              %lf = lacis.map %l0, %fade { ^bb0(%a: f32, %d: f32): %t = arith.mulf %a, %d : f32 lacis.yield %t : f32 } : !parts, !row -> !parts
              %l1 = lacis.reduce_rows "sum" %e1 onto %lf : !s -> !parts
              %b = lacis.map %e1 { ^bb0(%a: f32): %t = arith.truncf %a : f32 to bf16 lacis.yield %t : bf16 } : !s -> !e
              %o1 = lacis.map %o0, %fade { ^bb0(%a: f32, %d: f32): %t = arith.mulf %a, %d : f32 lacis.yield %t : f32 } : !o, !row -> !o
              %vt = lacis.acquire %v2 : !vring -> !kv
              %x1 = lacis.mma %b, %vt[%c0 : index] transposed into %o1 : !e, !kv into !o
              %o2 = lacis.complete %x1 : !o -> !o  %v3 = lacis.release %v2 : !vring
              lacis.yield %k3, %v3, %m1, %l1, %o2 : !kring, !vring, !row, !parts, !o
            }
            %sum = lacis.reduce_rows "sum" %l : !parts -> !row
            %part = lacis.map %sum { ^bb0(%a: f32): %is = arith.cmpf oeq, %a, %f0 : f32 %t = arith.divf %f1, %a : f32 %u = arith.select %is, %f0, %t : f32 lacis.yield %u : f32 } : !row -> !row
            %result = lacis.map %o, %part { ^bb0(%a: f32, %d: f32): %t = arith.mulf %a, %d : f32 lacis.yield %t : f32 } : !o, !row -> !o
            lacis.store_tile %result to %y[%row, %c0] through %qt : !q from %first : index : !o to !x[index, index]
            %q2 = lacis.release %q1 : !qring
            lacis.yield %q2, %k4, %v4 : !qring, !kring, !vring
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
