// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | FileCheck %s
// RUN: lacis-opt %s -mlir-print-op-generic | lacis-opt | FileCheck %s
// RUN: lacis-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: not lacis-opt %s -lacis-apply-steps 2>&1 | FileCheck %s --check-prefix=NAMES

// What a loop belongs to stands behind its letters, outermost first. Steps and messages spell it before them.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>

// NAMES: no loop named 'nobody'
// NAMES: loops here are 'i', 'ell.j', 'x.b', 'upto8.ell.j0', 'upto8.i_upto8.j0', 'k0.copy.i', 'first.o.i', 'long.short.j'

// CHECK-LABEL: func.func @paths(
func.func @paths(%w: tensor<?x?xf32, #csr>, %n: index) attributes {lacis.steps = [#lacis.split<loop = "nobody", factor = 2>]} {
  // CHECK: lacis.loop "i" %
  lacis.loop "i" %i to %n {
    // CHECK: lacis.level_loop "j"<part "ell"> %
    // GENERIC: letters = "j", level = 1 : i64, path = #lacis.path<part "ell">
    lacis.level_loop "j"<part "ell"> %w[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  // CHECK: lacis.loop "b"<copy "x"> %
  lacis.loop "b"<copy "x"> %b to %n {
    lacis.yield
  }
  // CHECK: lacis.loop "j0"<case "upto8", part "ell"> %
  lacis.loop "j0"<case "upto8", part "ell"> %j to %n {
    lacis.yield
  }
  // CHECK: lacis.loop "j0"<case "upto8", rows "i", case "upto8"> %
  lacis.loop "j0"<case "upto8", rows "i", case "upto8"> %s to %n {
    lacis.yield
  }
  // CHECK: lacis.loop "i"<nest "k0", phase "copy"> %
  lacis.loop "i"<nest "k0", phase "copy"> %c to %n {
    lacis.yield
  }
  // CHECK: lacis.loop "i"<phase "first", statement "o"> %
  lacis.loop "i"<phase "first", statement "o"> %f to %n {
    lacis.yield
  }
  // CHECK: lacis.loop "j"<part "long", part "short"> %
  lacis.loop "j"<part "long", part "short"> %l to %n {
    lacis.yield
  }
  return
}
