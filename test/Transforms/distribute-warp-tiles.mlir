// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda -lacis-distribute-warp-tiles | FileCheck %s
// RUN: sed 's/x.%b, %j./x[%j, %b]/' %s | lacis-opt - -lacis-apply-steps=target=cuda -lacis-distribute-warp-tiles | FileCheck %s --check-prefix=ACROSS
// RUN: sed 's/%a = /%e = /; s/%wide = /%a = arith.mulf %e, %e : bf16 %wide = /' %s | lacis-opt - -lacis-apply-steps=target=cuda -lacis-distribute-warp-tiles | FileCheck %s --check-prefix=MADE
// RUN: sed 's/lacis.write .*/%in = arith.cmpi slt, %i, %m : index scf.if %in { & }/' %s | lacis-opt - -lacis-apply-steps=target=cuda -lacis-distribute-warp-tiles | FileCheck %s --check-prefix=BEHIND
// RUN: lacis-opt %s -lacis-apply-steps=target=cuda | lacis-compile - --from=loops --target=cpu --emit=tiles -o - | FileCheck %s --check-prefix=LOOPS

// One 16 x 16 block a round: each lane reads four neighbours of two rows of it and of one vector, and holds four sums.
// CHECK-LABEL: func.func @tiles(
// CHECK:         lacis.loop "i1_b1" %[[LANE:.*]] to %c32
// CHECK-DAG:       %[[GROUP:.*]] = arith.divui %[[LANE]], %c4
// CHECK-DAG:       %[[MEMBER:.*]] = arith.remui %[[LANE]], %c4
// CHECK:           %[[S:.*]]:4 = lacis.level_loop "j0" %{{.*}} iter({{.*}}) -> (f32, f32, f32, f32)
// CHECK-COUNT-2:     lacis.value streamed %{{.*}} -> vector<4xbf16>
// CHECK:             arith.cmpi slt
// CHECK:             %[[B:.*]] = arith.select
// CHECK:             lacis.read %{{.*}} along 1 : tensor<?x?xbf16> -> vector<4xbf16>
// CHECK:             nvvm.mma.sync
// CHECK:           } reduce<add>
// CHECK-COUNT-4:   lacis.write
// CHECK:         } bind<lane>
// Neighbours along the depth that do not lie side by side are read one by one, and so is what is computed.
// ACROSS-COUNT-2: lacis.value streamed %{{.*}} -> vector<4xbf16>
// ACROSS-COUNT-4: lacis.read %{{.*}} : tensor<?x?xbf16> -> bf16
// ACROSS:         vector.from_elements
// ACROSS:         nvvm.mma.sync
// MADE:           arith.mulf %{{.*}} : bf16
// MADE:           vector.from_elements
// MADE:           lacis.read %{{.*}} along 1
// MADE:           nvvm.mma.sync
// A guard behind the sum is asked of each element that a lane holds.
// BEHIND-COUNT-4: %[[IN:.*]] = arith.cmpi slt
// BEHIND:         lacis.write
// Where there are no warps, the loops are what runs.
// LOOPS-NOT:     nvvm.mma
// LOOPS:         } mma<depth> reduce<add>
// LOOPS:         } mma<columns>
// LOOPS:         } mma<rows>
#bsr = #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
func.func @tiles(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w", lacis.axes = ["i", "j"]},
                 %x: tensor<?x?xbf16> {lacis.name = "x", lacis.axes = ["b", "j"]},
                 %y: tensor<?x?xf32> {lacis.name = "y", lacis.axes = ["b", "i"]}, %m: index, %n: index)
    attributes {lacis.steps = [#lacis.split<loop = "b", factor = 8>, #lacis.reorder<loops = ["b0", "i0", "i1", "b1"]>,
                               #lacis.tensorize<loops = ["i1", "b1", "j1"], kind = "mma">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  lacis.loop "b" %b to %n {
    lacis.loop "i0" %i0 to %m {
      lacis.loop "i1" %i1 to %c16 {
        %first = arith.muli %i0, %c16 : index
        %i = arith.addi %first, %i1 : index
        %row = lacis.locate %w[0] at %c0(%i0) : tensor<?x?xbf16, #bsr>
        %s = lacis.level_loop "j0" %w[1] at %row (%p, %j0) iter(%acc0 = %zero) -> (f32) : tensor<?x?xbf16, #bsr> {
          %q = lacis.locate %w[2] at %p(%i1) : tensor<?x?xbf16, #bsr>
          %t = lacis.loop "j1" %j1 to %c16 iter(%acc = %acc0) -> (f32) {
            %at = lacis.locate %w[3] at %q(%j1) : tensor<?x?xbf16, #bsr>
            %column = arith.muli %j0, %c16 : index
            %j = arith.addi %column, %j1 : index
            %a = lacis.value %w at %at : tensor<?x?xbf16, #bsr> -> bf16
            %v = lacis.read %x[%b, %j] : tensor<?x?xbf16> -> bf16
            %wide = arith.extf %a : bf16 to f32
            %wider = arith.extf %v : bf16 to f32
            %product = arith.mulf %wide, %wider : f32
            %sum = arith.addf %acc, %product : f32
            lacis.yield %sum : f32
          }
          lacis.yield %t : f32
        }
        lacis.write %s to %y[%b, %i] : f32 to tensor<?x?xf32>
        lacis.yield
      }
      lacis.yield
    }
    lacis.yield
  }
  return
}
