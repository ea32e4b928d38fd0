// SPDX-License-Identifier: Apache-2.0
// DEFINE: %{steps} = not lacis-opt - -lacis-apply-steps 2>&1 | FileCheck %s
// RUN: sed 's/STEPS/#lacis.precompute<part = "tail">/' %s | %{steps} --check-prefix=UNKNOWN
// RUN: sed 's/STEPS/#lacis.precompute<part = "rest">, #lacis.precompute<part = "rest">/' %s | %{steps} --check-prefix=AGAIN
// RUN: sed 's/STEPS/#lacis.precompute<part = "rest">, #lacis.precompute<part = "some">, #lacis.precompute<part = "few">/' %s | %{steps} --check-prefix=LAST
// RUN: sed 's/STEPS/#lacis.parallel<loop = "i">, #lacis.precompute<part = "rest">/' %s | %{steps} --check-prefix=LATE
// RUN: sed 's/STEPS/#lacis.precompute<part = "rest", layout = #csr>/' %s | %{steps} --check-prefix=LAYOUT
// RUN: sed 's/STEPS/#lacis.precompute<part = "some">, #lacis.precompute<part = "rest", layout = #strips>/' %s | %{steps} --check-prefix=OTHER
// RUN: sed 's/STEPS/#lacis.horizontal_fuse<parts = ["few", "some"]>, #lacis.precompute<part = "rest">/' %s | %{steps} --check-prefix=FUSED
// RUN: sed 's/STEPS/#lacis.precompute<part = "rest">/; s/, #sum>/, #csr>/; /lacis.part/d; s/%[a-z]*.1. at/%w[1] at/; s/value %[a-z]* at/value %w at/' %s | %{steps} --check-prefix=NONE

// UNKNOWN: error: precompute: no part 'tail' of a sum; parts are 'few', 'some', 'rest'
// AGAIN: error: precompute: part 'rest' has a nest of its own already
// LAST: error: precompute: part 'few' is the last one in the nest, which adds it to the others
// LATE: error: precompute: other steps have marked or copied the nest already; say it before them
// LAYOUT: error: precompute: the layout must be dense levels over the axes of the output
// OTHER: error: precompute: another part lies in #lacis.format<(l0) -> (l0 : dense)> already, and this one is added to it; say no layout, or that
// FUSED: error: precompute: the parts do not carry one sum, one after another
// NONE: error: precompute: no part 'rest' of a sum; no operand is one, see decompose

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#strips = #lacis.format<(i) -> (i floordiv 4 : dense, i mod 4 : dense)>
#sum = #lacis.sum<few = #csr when nnz(i) lt 4, some = #csr when nnz(i) lt 8, rest = #csr>
func.func @rest(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [STEPS]} {
  %zero = arith.constant 0.0 : f32
  %few = lacis.part "few" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  %some = lacis.part "some" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  %rest = lacis.part "rest" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    %s = lacis.level_loop "j"<part "few"> %few[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %few at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %t = lacis.level_loop "j"<part "some"> %some[1] at %i (%p, %j) iter(%acc = %s) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %some at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %u = lacis.level_loop "j"<part "rest"> %rest[1] at %i (%p, %j) iter(%acc = %t) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %rest at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %u to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
