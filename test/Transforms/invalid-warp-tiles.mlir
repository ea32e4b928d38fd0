// SPDX-License-Identifier: Apache-2.0
// DEFINE: %{form} = not lacis-opt - -lacis-apply-steps=target=cuda -lacis-distribute-warp-tiles 2>&1 | FileCheck %s
// RUN: sed 's/"i1", "b1", "j1"/"i1", "j1"/' %s | %{form} --check-prefix=BETWEEN
// RUN: sed 's/"b", factor = 8/"b", factor = 4/' %s | %{form} --check-prefix=SIZES
// RUN: sed 's/arith.mulf/arith.addf/' %s | %{form} --check-prefix=SUMS
// RUN: sed 's/= lacis.read .*/= arith.constant 1.0 : f32/; s/arith.extf %v : bf16 to f32/arith.addf %v, %v : f32/' %s | %{form} --check-prefix=TYPES
// RUN: sed 's/%q = /%in = arith.cmpi slt, %i, %m : index %q = /; s/\(.t\) = lacis.loop/\1 = scf.if %in -> (f32) { %u = lacis.loop/; s/lacis.yield \(.t\) /scf.yield %u : f32 } else { scf.yield %acc0 : f32 } lacis.yield \1 /' %s | %{form} --check-prefix=INSIDE
// RUN: sed 's/at %row (/at %i (/' %s | %{form} --check-prefix=BOUNDS
// RUN: sed 's/.s = lacis.level_loop/lacis.write %zero to %y[%b, %i] : f32 to tensor<?x?xf32> &/' %s | %{form} --check-prefix=WRITES
// RUN: sed 's/lacis.yield \(.t\) : f32/%u = arith.addf \1, \1 : f32 lacis.yield %u : f32/' %s | %{form} --check-prefix=SUMS
// RUN: sed 's/lacis.yield \(.sum\) : f32/%few = arith.cmpi slt, %j1, %n : index %u = arith.select %few, \1, %acc : f32 lacis.yield %u : f32/' %s | %{form} --check-prefix=SUMS
// RUN: sed 's/lacis.write \(.s\)/%u = lacis.loop "k" %k to %c16 iter(%o = \1) -> (f32) { %z = arith.addf %o, %o : f32 lacis.yield %z : f32 } lacis.write %u/' %s | %{form} --check-prefix=BESIDE
// RUN: sed 's/.s = lacis.level_loop/%both = arith.addi %i, %b : index %in = arith.cmpi slt, %both, %n : index scf.if %in { &/; s/lacis.write .*/& }/' %s | %{form} --check-prefix=GUARDS

// One step or one operation is another than in the nest that makes the tiles of a warp.
// BETWEEN: error: tensorize: loops of a warp's tile are rows around columns, with nothing between them
// SIZES: error: tensorize: loops of a warp's tile run 16 times or a multiple along rows, 8 or a multiple along columns, and 16 or 32 along the depth
// SUMS: error: tensorize: loops of a warp's tile sum products of two factors, and nothing else
// TYPES: error: tensorize: loops of a warp's tile have one factor along the rows and one along the columns, both of one half type
// INSIDE: error: tensorize: loops of a warp's tile have no guard inside their sum
// BOUNDS: error: tensorize: loops of a warp's tile have sums whose bounds do not depend on them
// WRITES: error: tensorize: loops of a warp's tile write only behind their sum
// BESIDE: error: tensorize: loops of a warp's tile have no loop beside those around the depth
// GUARDS: error: tensorize: loops of a warp's tile have guards along rows or along columns, not along both

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
