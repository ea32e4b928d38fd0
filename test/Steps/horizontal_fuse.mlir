// SPDX-License-Identifier: Apache-2.0
// RUN: sed 's/parts = \[\]/parts = ["rest", "ell"]/' %s | not lacis-opt - -split-input-file -lacis-apply-steps 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: error: horizontal_fuse: part 'ell' does not follow part 'rest' in the nest; neighbours run side by side, in their order
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// The second part carries on the sum of the first; as iterations of one loop both begin with what the loop carries.
// CHECK-LABEL: func.func @rows(
// CHECK:         lacis.loop "i"
// CHECK:           %[[SHORT:.*]] = lacis.locate
// CHECK:           %[[LONG:.*]] = lacis.locate
// CHECK:           %[[SUM:.*]] = lacis.loop "ell_rest" %[[PART:.*]] to %c2{{.*}} iter(%[[ACC:.*]] = %{{.*}}) -> (f32)
// CHECK:             %[[FIRST:.*]] = arith.cmpi eq, %[[PART]],
// CHECK:             scf.if %[[FIRST]] -> (f32)
// CHECK:               lacis.level_loop "j"<part "ell"> {{.*}} at %[[SHORT]] {{.*}} iter(%{{.*}} = %[[ACC]])
// CHECK:             } else {
// CHECK:               lacis.level_loop "j"<part "rest"> {{.*}} at %[[LONG]] {{.*}} iter(%{{.*}} = %[[ACC]])
// CHECK:           lacis.write %[[SUM]]
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<ell = #ell when fits, rest = #csr>
func.func @rows(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.horizontal_fuse<parts = []>]} {
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

// expected-error @+2 {{horizontal_fuse: no part "el" of a sum; parts are 'ell'}}
// expected-note @+1 {{asked for}}
func.func @no_part(%w: tensor<?x?xf32, #sum>) attributes {lacis.steps = [#lacis.horizontal_fuse<parts = ["el"]>]} {
  %c1 = arith.constant 1 : index
  %ell = lacis.part "ell" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #ell>
  lacis.loop "i" %i to %c1 {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{horizontal_fuse: side by side run two parts of a sum, or more, see decompose}}
// expected-note @+1 {{asked for}}
func.func @no_sum(%n: index) attributes {lacis.steps = [#lacis.horizontal_fuse<parts = []>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{horizontal_fuse: no part "ell" of a sum; no operand is one, see decompose}}
// expected-note @+1 {{asked for}}
func.func @dense(%n: index) attributes {lacis.steps = [#lacis.horizontal_fuse<parts = ["ell"]>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<left = #csr when i lt 9, rest = #csr>

// expected-error @+2 {{horizontal_fuse: part 'left' is not one loop that carries the sum}}
// expected-note @+1 {{asked for}}
func.func @no_loops(%w: tensor<?x?xf32, #sum>, %n: index) attributes {lacis.steps = [#lacis.horizontal_fuse<parts = []>]} {
  %left = lacis.part "left" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  %rest = lacis.part "rest" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
