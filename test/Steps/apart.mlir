// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// The rows that the last part lists get a nest of their own; the other keeps those of which that part has nothing.
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[LISTED:.*]] = lacis.positions %[[LONG:[0-9]+]][0]
// CHECK:         lacis.loop "i"<part "long"> %[[N:.*]] to %[[LISTED]]
// CHECK:           %[[LO:.*]], %[[HI:.*]] = lacis.bounds %[[LONG]][0]
// CHECK:           scf.if
// CHECK:             %[[ROW:.*]], %{{.*}} = lacis.coordinate %[[LONG]][0]
// CHECK:             lacis.level_loop "j"<part "long", part "short">
// CHECK:             lacis.level_loop "j"<part "long">
// CHECK:             lacis.write %{{.*}} to %{{.*}}[%[[ROW]]]
// CHECK:         lacis.loop "i"
// CHECK:           %[[FROM:.*]], %[[TO:.*]] = lacis.bounds %[[ALL:.*]][1]
// CHECK:           %[[NONE:.*]] = arith.cmpi sge, %[[FROM]], %[[TO]]
// CHECK:           scf.if %[[NONE]]
// CHECK:             %[[SUM:.*]] = lacis.level_loop "j"<part "short">
// CHECK-NOT:         lacis.level_loop
// CHECK:             lacis.write %[[SUM]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
#rows = #lacis.format<(i, j) -> (i : dense, j : compressed, link)>
#sum = #lacis.sum<short = #csr when nnz(i) lt 256, long = #dcsr>
func.func @rows(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.apart<part = "long">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %short = lacis.part "short" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  %long = lacis.part "long" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #dcsr>
  %all = lacis.walk %long : tensor<?x?xf32, #dcsr> to tensor<?x?xf32, #rows>
  lacis.loop "i" %i to %n {
    %a = lacis.locate %short[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j"<part "short"> %short[1] at %a (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %short at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %b = lacis.locate %all[0] at %c0(%i) : tensor<?x?xf32, #rows>
    %t = lacis.level_loop "j"<part "long"> %all[1] at %b (%p, %j) iter(%acc = %s) -> (f32) : tensor<?x?xf32, #rows> {
      %q = lacis.locate %all[2] at %p() : tensor<?x?xf32, #rows>
      %v = lacis.value %all at %q : tensor<?x?xf32, #rows> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %t to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{apart: no part 'long' of a sum, see decompose}}
// expected-note @+1 {{asked for}}
func.func @no_sum(%n: index) attributes {lacis.steps = [#lacis.apart<part = "long">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// A part that lists no rows is walked by a companion that does, for the rows alone.
// CHECK-LABEL: func.func @companion(
// CHECK:         %[[LONG:.*]] = lacis.part "long"
// CHECK:         %[[LIST:.*]] = lacis.walk %[[LONG]] {{.*}} to tensor<?x?xf32, #lacis.format<(i, j) -> (i : compressed, j : compressed<unique=false>, link)>>
// CHECK:         lacis.positions %[[LIST]][0]
// CHECK:           lacis.coordinate %[[LIST]][0]
// CHECK:           lacis.level_loop "j"<part "long"> %[[LONG]][1]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<short = #csr when nnz(i) lt 256, long = #csr>
func.func @companion(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.apart<part = "long">]} {
  %zero = arith.constant 0.0 : f32
  %root = arith.constant 0 : index
  %long = lacis.part "long" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    %b = lacis.locate %long[0] at %root(%i) : tensor<?x?xf32, #csr>
    %t = lacis.level_loop "j"<part "long"> %long[1] at %b (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %long at %p : tensor<?x?xf32, #csr> -> f32
      lacis.yield %v : f32
    }
    lacis.write %t to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
#sum = #lacis.sum<short = #dcsr when nnz(i) lt 256, long = #dcsr>

// expected-error @+2 {{apart: part 'long' is not the last of the sum, with one loop over the entries of a row}}
// expected-note @+1 {{asked for}}
func.func @no_walk(%w: tensor<?x?xf32, #sum>, %n: index) attributes {lacis.steps = [#lacis.apart<part = "long">]} {
  %long = lacis.part "long" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #dcsr>
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
#sum = #lacis.sum<short = #dcsr when nnz(i) lt 256, long = #dcsr>

// expected-error @+2 {{apart: loops of the nest are marked already; say it before other steps}}
// expected-note @+1 {{asked for}}
func.func @too_late(%w: tensor<?x?xf32, #sum>, %n: index)
    attributes {lacis.steps = [#lacis.parallel<loop = "i">, #lacis.apart<part = "long">]} {
  %long = lacis.part "long" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #dcsr>
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
