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
