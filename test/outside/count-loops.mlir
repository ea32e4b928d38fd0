// SPDX-License-Identifier: Apache-2.0
// RUN: %outside lacis-opt %s -verify-diagnostics -outside-count-loops
// RUN: not lacis-opt %s -outside-count-loops 2>&1 | FileCheck %s
// CHECK: Unknown command line argument '-outside-count-loops'

// A pass from outside has its flag in lacis-opt; a core without the folder does not know it.
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-remark @+1 {{1 loops over coordinates, 1 over positions}}
func.func @rows(%w: tensor<?x?xf32, #csr>, %n: index) {
  lacis.loop "i" %i to %n {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  return
}
