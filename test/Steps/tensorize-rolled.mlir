// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>

// The statements of a rolled loop are of tiles.
// CHECK-LABEL: func.func @rolled(
// CHECK:         lacis.level_loop "j0"
// CHECK:         } pipeline<2> rolled tiled
func.func @rolled(%p: tensor<?x?xi1, #bsr>, %n: index)
    attributes {lacis.steps = [#lacis.pipeline<loop = "j0", stages = 2>, #lacis.tensorize<loops = ["j0"]>]} {
  lacis.loop "i0" %i0 to %n {
    lacis.level_loop "j0" %p[1] at %i0 (%q, %j0) : tensor<?x?xi1, #bsr> {
      lacis.yield
    } rolled
    lacis.yield
  }
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>

// expected-note @below {{asked for #lacis.tensorize<loops = ["j0"]>}}
// expected-error @below {{tensorize: loop 'i1' of a statement has no constant trip count}}
func.func @unknown(%p: tensor<?x?xi1, #bsr>, %n: index)
    attributes {lacis.steps = [#lacis.tensorize<loops = ["j0"]>]} {
  lacis.loop "i0" %i0 to %n {
    lacis.loop "i1" %i1 to %n {
      lacis.yield
    }
    lacis.level_loop "j0" %p[1] at %i0 (%q, %j0) : tensor<?x?xi1, #bsr> {
      lacis.yield
    } rolled
    lacis.yield
  }
  return
}
