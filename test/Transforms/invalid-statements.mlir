// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-form-tiles

// Rolled loops whose statements are no operations on tiles.

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>

func.func @group(%p: tensor<?x?xi1, #bsr>, %n: index) {
  lacis.loop "i0" %i0 to %n {
    // expected-error @below {{tiles: no loop right around loop 'j0' is bound to blocks or to 'warpgroup'; bind the one whose rounds are rows of tiles}}
    lacis.level_loop "j0" %p[1] at %i0 (%q, %j0) : tensor<?x?xi1, #bsr> {
      lacis.yield
    } rolled tiled
    lacis.yield
  }
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>

func.func @trip(%p: tensor<?x?xi1, #bsr>, %n: index) {
  %two = arith.constant 2 : index
  lacis.loop "i0" %i0 to %two {
    // expected-error @below {{tiles: loop 'i1' has no constant trip count, as a tile has}}
    lacis.loop "i1" %i1 to %n {
      lacis.yield
    }
    lacis.level_loop "j0" %p[1] at %i0 (%q, %j0) : tensor<?x?xi1, #bsr> {
      lacis.yield
    } rolled tiled
    lacis.yield
  } bind<warpgroup>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>

func.func @nothing(%p: tensor<?x?xi1, #bsr>) {
  %two = arith.constant 2 : index
  lacis.loop "i0" %i0 to %two {
    // expected-error @below {{tiles: 'j0' is no statement of a tile: that sums up products of rows and of columns, reduces rows, or is arithmetic on what others made for the same row}}
    lacis.level_loop "j0" %p[1] at %i0 (%q, %j0) : tensor<?x?xi1, #bsr> {
      lacis.yield
    } rolled tiled
    lacis.yield
  } bind<warpgroup>
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>

func.func @serial(%p: tensor<?x?xi1, #bsr>, %n: index) {
  %two = arith.constant 2 : index
  // expected-error @below {{tiles: loop 'h' stands around roles and is bound to no blocks}}
  lacis.loop "h" %h to %n {
    lacis.loop "i0" %i0 to %two {
      lacis.level_loop "j0" %p[1] at %i0 (%q, %j0) : tensor<?x?xi1, #bsr> {
        lacis.yield
      } rolled tiled
      lacis.yield
    } bind<warpgroup>
    lacis.yield
  }
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#t = #lacis.format<(l0, l1) -> (l0 : dense, l1 : dense)>
!x = tensor<?x64xbf16>

func.func @skewed(%p: tensor<?x?xi1, #bsr>, %x: !x {lacis.name = "x", lacis.staged = "shared"},
                  %y: !x {lacis.name = "y", lacis.staged = "shared"}) {
  %two = arith.constant 2 : index  %n = arith.constant 64 : index  %zero = arith.constant 0.0 : f32
  lacis.loop "i0" %i0 to %two {
    %s = lacis.workspace(%n, %n) place<private> : tensor<?x?xf32, #t>
    // expected-error @below {{tiles: loop 'j0' is skewed, and no sum of it can wait for the next round}}
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
          lacis.write %sum to %s[%i1, %j1] : f32 to tensor<?x?xf32, #t>
          lacis.yield
        }
        lacis.yield
      }
      lacis.yield
    } rolled skewed tiled
    lacis.yield
  } bind<warpgroup>
  return
}
