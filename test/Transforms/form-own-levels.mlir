// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-to-tiles="target=cuda arch=sm_90a" | FileCheck %s
// RUN: lacis-compile %s --target=cuda:sm_80 --emit=tiles -o - | FileCheck %s --check-prefix=LARGE
// RUN: lacis-compile %s --target=cuda:sm_89 --emit=tiles -o - | FileCheck %s --check-prefix=SMALL
// RUN: sed 's/256/192/g' %s | lacis-compile - --target=cuda:sm_90a --emit=tiles -o - | FileCheck %s --check-prefix=HALF
// RUN: sed 's/-> (i floordiv 256 : dense, j floordiv 256/-> (j floordiv 256 : dense, i floordiv 256/' %s | lacis-compile - --target=cuda:sm_90a --emit=tiles -o - | FileCheck %s --check-prefix=LINK
// RUN: lacis-compile %s --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: sed 's/j floordiv 256 : compressed/&<pos=i64, crd=i64>/' %s | lacis-compile - --target=cuda:sm_90a --emit=buffers -o - | FileCheck %s --check-prefix=WIDE
// RUN: sed 's/j floordiv 256 : compressed/&<pos=i64, crd=i64>/' %s | lacis-compile - --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=UNIFORM

// Stored blocks of several tiles: both roles walk the levels of the format itself. A block of threads has 128 rows of a
// stored block, two consumers 64 each; a round brings 64 columns of x, which they share, and their two tiles. The products
// stay under way from one round to the next.
// CHECK-LABEL: func.func @product(
// CHECK-NOT:     lacis.regroup
// CHECK-NOT:     lacis.balance
// CHECK:         lacis.loop "i0" %[[I:.*]] to
// CHECK:           lacis.loop "i10" %[[PART:.*]] to %c2
// CHECK:             lacis.loop "b0" %[[B:.*]] to
// CHECK:               lacis.ring : !lacis.ring<4, <256x64xbf16>, <2x64x64xbf16>>
// CHECK:               lacis.roles producer {
// CHECK:                 %[[ROW:.*]] = lacis.locate %arg0[0] at %{{.*}}(%[[I]])
// CHECK:                 lacis.level_loop "j0" %arg0[1] at %[[ROW]] (%[[POSITION:.*]], %[[J:.*]]) iter
// CHECK:                   lacis.loop "j10" %[[ROUND:.*]] to %c4
// CHECK:                     lacis.load_tile %arg1[{{.*}}] to %{{.*}} to !lacis.tile<256x64xbf16>
// CHECK:                     lacis.load_tile %arg0[%[[POSITION]], %{{.*}}, %{{.*}}] to %{{.*}}[%c0{{.*}}] : {{.*}} to !lacis.tile<2x64x64xbf16>
// CHECK:                     lacis.load_tile %arg0[%[[POSITION]], %{{.*}}, %{{.*}}] to %{{.*}}[%c1{{.*}}] : {{.*}} to !lacis.tile<2x64x64xbf16>
// CHECK:               } consumers 2 (
// CHECK:                 lacis.splat {{.*}} to !lacis.acc<64x256xf32>
// CHECK:                 lacis.level_loop "j0" %arg0[1] at
// CHECK:                   lacis.loop "j10"
// CHECK:                     %[[MORE:.*]] = lacis.mma %{{.*}}[%{{.*}} : index], %{{.*}} into
// CHECK-NOT:                 lacis.complete
// CHECK:                     lacis.yield {{.*}}, %[[MORE]] :
// CHECK:                 lacis.complete
// CHECK:                 lacis.store_tile {{.*}} transposed
// CHECK:             bind<block.y>
// CHECK:           bind<block.z>
// CHECK:         bind<block.x>
// LARGE:         lacis.ring : !lacis.ring<4, <192x64xbf16>, <2x64x64xbf16>>
// SMALL:         lacis.ring : !lacis.ring<3, <128x64xbf16>, <2x64x64xbf16>>
// Blocks of 192 rows are no two panels of 128: a block of threads has 64 of them.
// HALF:          lacis.loop "i10" {{.*}} to %c3
// HALF:          lacis.ring : !lacis.ring<4, <256x64xbf16>, <64x64xbf16>>
// HALF:          } consumers 1
// A companion walks blocks that are stored column by column, and links to where they lie.
// LINK:          %[[WALK:.*]] = lacis.walk %arg0
// LINK:          %[[SLOT:.*]] = lacis.locate %[[WALK]][2] at
// LINK:          lacis.load_tile %arg0[%[[SLOT]],
// PTX:           wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16
// PTX-NOT:       st.local
// Positions of 64 bits count so; the copy engine gets rows and columns of 32, and all threads of a warp the same bounds.
// WIDE:          %[[TOKEN:.*]] = arith.trunci %{{.*}} : i64 to i32
// WIDE:          lacis.load_tile %{{.*}}[%[[TOKEN]], %{{.*}}] {{.*}} : !llvm.ptr[i32, i32]
// WIDE:          } consumers 2 (
// WIDE:          %[[NUMBER:.*]] = arith.trunci %{{.*}} : i64 to i32
// WIDE:          lacis.mma %{{.*}}[%[[NUMBER]] : i32],
// WIDE:          lacis.store_tile {{.*}} : !lacis.acc<64x256xf32> to !llvm.ptr[i32, i32]
// UNIFORM-COUNT-2: ld.global.nc.b32
// UNIFORM-COUNT-2: shfl.sync.idx.b32
// UNIFORM:       or.b64
// UNIFORM:       wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16

#bsr = #lacis.format<(i, j) -> (i floordiv 256 : dense, j floordiv 256 : compressed, i mod 256 : dense, j mod 256 : dense)>
func.func @product(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.divisible = array<i64: 256, 8>},
                   %x: tensor<?x?xbf16> {lacis.name = "x"}) -> tensor<?x?xbf16> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %x, %c0 : tensor<?x?xbf16>
  %i = tensor.dim %w, %c0 : tensor<?x?xbf16, #bsr>
  %empty = tensor.empty(%b, %i) : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>,
                                          affine_map<(b, i, j) -> (b, i)>],
                         iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xbf16, #bsr>, tensor<?x?xbf16>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%v: bf16, %e: bf16, %acc: f32):
    %vw = arith.extf %v : bf16 to f32
    %ew = arith.extf %e : bf16 to f32
    %product = arith.mulf %vw, %ew : f32
    %next = arith.addf %acc, %product : f32
    linalg.yield %next : f32
  } -> tensor<?x?xf32>
  %target = tensor.empty(%b, %i) : tensor<?x?xbf16>
  %result = linalg.generic {indexing_maps = [affine_map<(b, i) -> (b, i)>, affine_map<(b, i) -> (b, i)>],
                            iterator_types = ["parallel", "parallel"], lacis.loops = ["b", "i"]}
      ins(%sum : tensor<?x?xf32>) outs(%target : tensor<?x?xbf16>) {
  ^bb0(%value: f32, %old: bf16):
    %rounded = arith.truncf %value : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<?x?xbf16>
  return %result : tensor<?x?xbf16>
}
