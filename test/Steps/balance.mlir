// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

// CHECK-LABEL: func.func @lists(
// CHECK:         lacis.loop "b"
// CHECK:         } balance<raster = 4, groups = 16>
func.func @lists(%n: index) attributes {lacis.steps = [#lacis.balance<loop = "b", raster = 4, groups = 16>]} {
  lacis.loop "i" %i to %n {
    lacis.loop "b" %b to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{balance: loop 'i' must be the second of its nest, inside the loop whose rounds differ in work, or the first and over stored blocks; reorder it}}
// expected-note @+1 {{asked for}}
func.func @first(%n: index) attributes {lacis.steps = [#lacis.balance<loop = "i", raster = 4, groups = 16>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{balance: raster and groups are at least 1}}
// expected-note @+1 {{asked for}}
func.func @none(%n: index) attributes {lacis.steps = [#lacis.balance<loop = "i", raster = 0, groups = 16>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
// expected-error @+2 {{balance: loop 'e' runs over stored blocks, which have neither raster nor groups; both are 1}}
// expected-note @+1 {{asked for}}
func.func @shares(%w: tensor<?x?xi1, #bsr>) attributes {lacis.steps = [#lacis.balance<loop = "e", raster = 4, groups = 1>]} {
  %n = lacis.positions %w[1] : tensor<?x?xi1, #bsr>
  lacis.loop "e" %e to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{balance: only shares of stored blocks lie 'within' so many columns, at least 1}}
// expected-note @+1 {{asked for}}
func.func @within(%n: index) attributes {lacis.steps = [#lacis.balance<loop = "b", raster = 4, groups = 16, within = 640>]} {
  lacis.loop "i" %i to %n {
    lacis.loop "b" %b to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{balance: shares of stored blocks have 'parts', at least 2}}
// expected-note @+1 {{asked for}}
func.func @parts(%n: index) attributes {lacis.steps = [#lacis.balance<loop = "b", raster = 4, groups = 16, parts = 4>]} {
  lacis.loop "i" %i to %n {
    lacis.loop "b" %b to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// CHECK-LABEL: func.func @cut(
// CHECK:         } balance<raster = 4, groups = 16, cut = 8>
func.func @cut(%n: index) attributes {lacis.steps = [#lacis.balance<loop = "b", raster = 4, groups = 16, cut = 8>]} {
  lacis.loop "i" %i to %n {
    lacis.loop "b" %b to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{balance: rows are 'cut' up to so many rounds of the second loop, at least 1}}
// expected-note @+1 {{asked for}}
func.func @cut_none(%n: index) attributes {lacis.steps = [#lacis.balance<loop = "b", raster = 4, groups = 16, cut = 0>]} {
  lacis.loop "i" %i to %n {
    lacis.loop "b" %b to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}
