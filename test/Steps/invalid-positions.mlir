// SPDX-License-Identifier: Apache-2.0
// RUN: sed 's/@STEPS@/#lacis.parallel<loop = "j">/' %s | not lacis-opt -lacis-apply-steps 2>&1 | FileCheck %s --check-prefixes=PARALLEL,ALL
// RUN: sed 's/@STEPS@/#lacis.race<loop = "j", strategy = "private">/' %s | not lacis-opt -lacis-apply-steps 2>&1 | FileCheck %s --check-prefixes=RACE,ALL
// RUN: sed 's/@STEPS@/#lacis.bind<loop = "j", unit = "block.y">/' %s | not lacis-opt -lacis-apply-steps=target=cuda 2>&1 | FileCheck %s --check-prefixes=BIND,ALL
// RUN: sed 's/@STEPS@/#lacis.unroll<loop = "j", factor = 2>, #lacis.parallel<loop = "j">/' %s | not lacis-opt -lacis-apply-steps 2>&1 | FileCheck %s --check-prefix=MARKED
// RUN: sed 's/@STEPS@/#lacis.split_nnz<loop = "j", parts = 8>, #lacis.parallel<loop = "j0">/' %s | not lacis-opt -lacis-apply-steps 2>&1 | FileCheck %s --check-prefix=CARRIED
// RUN: sed 's/@STEPS@/#lacis.split_nnz<loop = "j", parts = 8, factor = 8>/' %s | not lacis-opt -lacis-apply-steps 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: sed 's/@STEPS@/#lacis.split_nnz<loop = "j">/' %s | not lacis-opt -lacis-apply-steps 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: sed 's/@STEPS@/#lacis.split_nnz<loop = "j", parts = 0>/' %s | not lacis-opt -lacis-apply-steps 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/@STEPS@/#lacis.split_nnz<loop = "i_j", parts = 8>/' %s | not lacis-opt -lacis-apply-steps 2>&1 | FileCheck %s --check-prefix=JOINED

// A loop over positions is no unit of its own: what says so names the loop, the sum, and the strategies that would do.
// PARALLEL: error: parallel:
// RACE:     error: race:
// BIND:     error: bind:
// ALL-SAME: loop 'j' carries the sum of 'y' over the positions of a level; split_nnz with 'parts' makes units of these, 'j0', and race with a strategy brings their sums together: 'private' would do
// MARKED:   error: parallel: loop 'j' carries the sum of 'y' over the positions of a level, and loop 'j' is marked already
// CARRIED:  error: parallel: loop 'j0' carries a sum; two threads would race for it; race with a strategy makes its iterations units: 'private' would do
// BOTH:     error: split_nnz: loop 'j' is cut into shares of 'factor' entries, or into 'parts' of each row: say one of the two
// NONE:     error: split_nnz: parts 0 of loop 'j' must be positive
// JOINED:   error: split_nnz: 'parts' are of the positions under one parent, and 'i_j' names no loop over such; 'factor' says how many entries a share of all has
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32> {lacis.name = "y"}) attributes {lacis.steps = [@STEPS@]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
