// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-form-tiles

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#t = #lacis.format<(l0, l1) -> (l0 : dense, l1 : dense)>

func.func @lines(%p: tensor<?x?xi1, #bsr>, %x: tensor<?x64xbf16> {lacis.name = "x", lacis.staged = "shared"},
                 %y: tensor<64x?xbf16> {lacis.name = "y", lacis.staged = "shared"}) {
  %two = arith.constant 2 : index  %n = arith.constant 64 : index  %w = arith.constant 72 : index  %zero = arith.constant 0.0 : f32
  lacis.loop "i0" %i0 to %two {
    %s = lacis.workspace(%n, %w) place<private> : tensor<?x?xf32, #t>
    lacis.level_loop "j0" %p[1] at %i0 (%q, %j0) : tensor<?x?xi1, #bsr> {
      %rows = arith.muli %i0, %n : index  %columns = arith.muli %j0, %w : index
      lacis.loop "i1" %i1 to %n {
        lacis.loop "j1" %j1 to %w {
          %i = arith.addi %rows, %i1 : index  %j = arith.addi %columns, %j1 : index
          %sum = lacis.loop "d" %d to %n iter(%c = %zero) -> (f32) {
            %a = lacis.read %x[%i, %d] : tensor<?x64xbf16> -> bf16
            // expected-error @below {{tiles: operand 'y' has 72 elements in a row of a tile, which are no whole lines of 64}}
            %o = lacis.read %y[%d, %j] : tensor<64x?xbf16> -> bf16
            %f = arith.extf %a : bf16 to f32  %g = arith.extf %o : bf16 to f32
            %m = arith.mulf %f, %g : f32  %e = arith.addf %c, %m : f32
            lacis.yield %e : f32
          } reduce<add>
          lacis.write %sum to %s[%i1, %j1] : f32 to tensor<?x?xf32, #t>
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
