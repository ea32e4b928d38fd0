// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-form-tiles | FileCheck %s
// RUN: sed 's/lacis.yield \(.e\)/%below = arith.cmpi slt, %i, %j : index %u = arith.select %below, \1, %c : f32 lacis.yield %u/' %s | not lacis-opt - -lacis-form-tiles 2>&1 | FileCheck %s --check-prefix=CONDITION

// Elements of an operand at rows and columns are loaded beside the product, and added when it is complete.
// CONDITION: error: tiles: 'd' is no statement of a tile
// CHECK-LABEL: func.func @elements(
// CHECK:         lacis.roles
// CHECK:           %[[SUM:.*]] = lacis.mma
// CHECK:           %[[BIAS:.*]] = lacis.map at[%{{.*}}, %{{.*}} : index, index] {
// CHECK-NEXT:      ^bb0(%[[I:.*]]: index, %[[J:.*]]: index):
// CHECK-NEXT:        %[[ELEMENT:.*]] = lacis.read %{{.*}}[%[[I]], %[[J]]] : tensor<?x?xf32> -> f32
// CHECK-NEXT:        lacis.yield %[[ELEMENT]]
// CHECK:           %[[WHOLE:.*]] = lacis.complete %[[SUM]]
// CHECK:           lacis.map %[[WHOLE]], %[[BIAS]]
// CHECK:             arith.addf
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#t = #lacis.format<(l0, l1) -> (l0 : dense, l1 : dense)>
!x = tensor<?x64xbf16>

func.func @elements(%p: tensor<?x?xi1, #bsr>, %x: !x {lacis.name = "x", lacis.staged = "shared"},
                    %y: !x {lacis.name = "y", lacis.staged = "shared"}, %b: tensor<?x?xf32> {lacis.name = "b"}) {
  %two = arith.constant 2 : index  %n = arith.constant 64 : index  %zero = arith.constant 0.0 : f32
  lacis.loop "i0" %i0 to %two {
    %s = lacis.workspace(%n, %n) place<private> : tensor<?x?xf32, #t>
    lacis.level_loop "j0" %p[1] at %i0 (%q, %j0) : tensor<?x?xi1, #bsr> {
      %rows = arith.muli %i0, %n : index  %columns = arith.muli %j0, %n : index
      lacis.loop "i1" %i1 to %n {
        lacis.loop "j1" %j1 to %n {
          %i = arith.addi %rows, %i1 : index  %j = arith.addi %columns, %j1 : index
          %sum = lacis.loop "d" %d to %n iter(%c = %zero) -> (f32) {
            %a = lacis.read %x[%i, %d] : !x -> bf16  %o = lacis.read %y[%j, %d] : !x -> bf16
            %f = arith.extf %a : bf16 to f32  %g = arith.extf %o : bf16 to f32
            %m = arith.mulf %f, %g : f32  %e = arith.addf %c, %m : f32
            lacis.yield %e : f32
          } reduce<add>
          %bias = lacis.read %b[%i, %j] : tensor<?x?xf32> -> f32
          %v = arith.addf %sum, %bias : f32
          lacis.write %v to %s[%i1, %j1] : f32 to tensor<?x?xf32, #t>
          lacis.yield
        }
        lacis.yield
      }
      lacis.yield
    } rolled tiled
    lacis.yield
  } bind<warpgroup>
  return
}
