// SPDX-License-Identifier: Apache-2.0
// DEFINE: %{steps} = not lacis-opt - -lacis-apply-steps=target=cuda 2>&1 | FileCheck %s
// RUN: sed 's/at %c0(%i)/at %c0(%c0)/' %s | %{steps} --check-prefix=ORDER
// RUN: sed 's/j : compressed/j : dense/' %s | %{steps} --check-prefix=OWNER
// RUN: sed 's/addf/mulf/; s/0.0 : f32/1.0 : f32/; s/#lacis.split<.*32>,//; s/"order"/"atomic"/' %s | %{steps} --check-prefix=ATOMIC
// RUN: sed 's/i_j0", strategy = "order"/i_j00", strategy = "segment"/' %s | %{steps} --check-prefix=OUTER
// RUN: sed 's/#lacis.race<loop = "i_j0", strategy = "order">/#lacis.unroll<loop = "i_j01", factor = 2>, #lacis.race<loop = "i_j01", strategy = "segment">/' %s | %{steps} --check-prefix=MARKED
// RUN: sed 's/%row = /%in = arith.cmpi slt, %i, %m : index scf.if %in { &/; s/lacis.write .*/& }/; s/i_j0", strategy = "order"/i_j01", strategy = "segment"/' %s | %{steps} --check-prefix=GUARD

// Shares of entries that lie otherwise, and strategies that do not fit them.
// ORDER: error: split_nnz: the entries of 'j' do not lie in the order of loop 'i'; see walk
// OWNER: error: split_nnz: level kind 'full' does not tell the row of a position
// ATOMIC: error: race: no instruction brings these parts together atomically
// OUTER: error: race: 'segment' is for a group of shares of known number; loop 'i_j00' is not the innermost around the rows of a share, see reorder
// MARKED: error: race: 'segment' is for a group of shares of known number; loop 'i_j01' is marked already
// GUARD: error: race: 'segment' is for a group of shares of known number; loop 'i_j01' has a guard inside that depends on the row (blocks that do not divide the rows)

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32> {lacis.name = "y"}, %n: index, %m: index)
    attributes {lacis.nondeterministic, lacis.steps = [
      #lacis.split_nnz<loop = "i_j", factor = 4>, #lacis.split<loop = "i_j0", factor = 32>,
      #lacis.race<loop = "i_j0", strategy = "order">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %sum = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %sum to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
