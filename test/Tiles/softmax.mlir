// SPDX-License-Identifier: Apache-2.0
// y[i, b] = exp(s[i, b] - max) / sum, over at most 128 tokens b, where s[i, b] = sum over j of w[i, j] x[b, j]:
// a product, reductions of rows and arithmetic on an accumulator, chained. Nothing is sparse.
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s
// RUN: lacis-compile %s --target=cpu --emit=target -o - | FileCheck %s --check-prefix=PLAIN
// RUN: sed 's/consumers 2/consumers 1/' %s | lacis-compile - --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=ONE
// PLAIN: cf.switch
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK: max.NaN.f32
// CHECK: shfl.sync.bfly
// CHECK: stmatrix.sync.aligned.m8n8.x4.shared

// One consumer and the producer share the registers out evenly: the assembler takes no more than it gives a thread.
// ONE: setmaxnreg.inc.sync.aligned.u32 {{.*}}240;
// ONE: setmaxnreg.dec.sync.aligned.u32 {{.*}}240;

!x = !lacis.tile<128x64xbf16>
!w = !lacis.tile<2x64x64xbf16>
!ring = !lacis.ring<4, <128x64xbf16>, <2x64x64xbf16>>
!acc = !lacis.acc<64x128xf32>
!rows = !lacis.acc<64x1xf32>

module attributes {lacis.stage = "tiles"} {
  func.func @softmax(%w: tensor<?x?xbf16> {lacis.name = "w", lacis.axes = ["i", "j"]},
                     %x: tensor<?x?xbf16> {lacis.name = "x", lacis.axes = ["b", "j"]},
                     %y: tensor<?x?xbf16> {lacis.name = "y", lacis.axes = ["i", "b"], lacis.output})
      attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %rows = tensor.dim %w, %c0 : tensor<?x?xbf16>
    %columns = tensor.dim %w, %c1 : tensor<?x?xbf16>
    %tiles = arith.ceildivui %rows, %c128 : index
    %steps = arith.ceildivui %columns, %c64 : index
    lacis.loop "i0" %i0 to %tiles {
      %i = arith.muli %i0, %c128 : index
      %ring = lacis.ring : !ring
      lacis.roles producer {
        %end = lacis.loop "j0" %j0 to %steps iter(%r = %ring) -> (!ring) {
          %j = arith.muli %j0, %c64 : index
          %below = arith.addi %i, %c64 : index
          %xs, %ws = lacis.acquire %r : !ring -> !x, !w
          lacis.load_tile %x[%c0, %j] to %xs : tensor<?x?xbf16>[index, index] to !x
          lacis.load_tile %w[%i, %j] to %ws[%c0 : index] : tensor<?x?xbf16>[index, index] to !w
          lacis.load_tile %w[%below, %j] to %ws[%c1 : index] : tensor<?x?xbf16>[index, index] to !w
          %next = lacis.release %r : !ring
          lacis.yield %next : !ring
        }
        lacis.yield
      } consumers 2 (%c : index) {
        %none = lacis.splat %zero : f32 to !acc
        %end, %sum = lacis.loop "j0" %j0 to %steps iter(%r = %ring, %a = %none) -> (!ring, !acc) {
          %xs, %ws = lacis.acquire %r : !ring -> !x, !w
          %more = lacis.mma %ws[%c : index], %xs into %a : !w, !x into !acc
          %next = lacis.release %r : !ring
          lacis.yield %next, %more : !ring, !acc
        }
        %r2, %scores = lacis.complete %end, %sum : !ring, !acc -> !ring, !acc
        %max = lacis.reduce_rows "max" %scores : !acc -> !rows
        %powers = lacis.map %scores, %max {
        ^bb0(%s: f32, %m: f32):
          %d = arith.subf %s, %m : f32
          %e = math.exp %d : f32
          lacis.yield %e : f32
        } : !acc, !rows -> !acc
        %total = lacis.reduce_rows "sum" %powers : !acc -> !rows
        %result = lacis.map %powers, %total {
        ^bb0(%p: f32, %t: f32):
          %q = arith.divf %p, %t : f32
          lacis.yield %q : f32
        } : !acc, !rows -> !acc
        %part = arith.muli %c, %c64 : index
        %first = arith.addi %i, %part : index
        lacis.store_tile %result to %y[%first, %c0] : !acc to tensor<?x?xbf16>[index, index]
        lacis.yield
      }
      lacis.yield
    } bind<block.x>
    return
  }
}
