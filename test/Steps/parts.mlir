// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A name that no loop has means the loop of every part that has it; with the part's name it means that one.
// CHECK-LABEL: func.func @rows(
// CHECK:         lacis.loop "i"
// CHECK:           lacis.loop "j0"<part "ell">
// CHECK:             lacis.loop "j1"<part "ell">
// CHECK:             } reduce<add> unroll<2>
// CHECK:           lacis.level_loop "j"<part "rest">
// CHECK:           } reduce<add> unroll<4>
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<ell = #ell when fits, rest = #csr>
func.func @rows(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.unroll<loop = "rest.j", factor = 4>,
                               #lacis.split_nnz<loop = "ell.j", factor = 8>, #lacis.unroll<loop = "j1", factor = 2>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %ell = lacis.part "ell" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #ell>
  %rest = lacis.part "rest" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    %short = lacis.locate %ell[0] at %c0(%i) : tensor<?x?xf32, #ell>
    %s = lacis.level_loop "j"<part "ell"> %ell[1] at %short (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #ell> {
      %v = lacis.value %ell at %p : tensor<?x?xf32, #ell> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %long = lacis.locate %rest[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %t = lacis.level_loop "j"<part "rest"> %rest[1] at %long (%p, %j) iter(%acc = %s) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %rest at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %t to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<ell = #ell when fits, rest = #csr>

// expected-error @+2 {{split: no loop named 'ell.i'}}
// expected-note @+1 {{loops here are 'i'}}
func.func @no_loop(%w: tensor<?x?xf32, #sum>, %n: index)
    attributes {lacis.steps = [#lacis.split<loop = "ell.i", factor = 8>]} {
  %ell = lacis.part "ell" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #ell>
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<rest = #csr>

// expected-error @+2 {{split_nnz: loop 'i' is that of all parts of a sum; the entries of one part, 'rest.j', are cut below it}}
// expected-note @+1 {{asked for}}
func.func @one_part(%w: tensor<?x?xf32, #sum>, %n: index) attributes {lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 8>]} {
  %rest = lacis.part "rest" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    lacis.level_loop "j"<part "rest"> %rest[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  return
}
