// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-apply-steps | FileCheck %s

// A part is summed up by a nest of its own, which runs before; the nest itself begins with what that kept, and keeps
// what follows the sum.
// CHECK-LABEL: func.func @rest(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, #{{.*}}, %[[Y:[^:]*]]: tensor<?xf32>
// CHECK:         %[[SIZE:.*]] = tensor.dim %[[Y]]
// CHECK:         %[[KEPT:.*]] = lacis.workspace(%[[SIZE]]) : tensor<?xf32, #lacis.format<(l0) -> (l0 : dense)>>
// CHECK:         lacis.loop "i"<part "rest"> %[[I:.*]] to
// CHECK-NOT:       "few.j"
// CHECK:           %[[SUM:.*]] = lacis.level_loop "j"<part "rest"> {{.*}} iter(%{{.*}} = %cst)
// CHECK:           lacis.write %[[SUM]] to %[[KEPT]][%[[I]]]
// CHECK-NOT:       arith.negf
// CHECK:         lacis.loop "i" %[[I:.*]] to
// CHECK:           %[[BEGIN:.*]] = lacis.read %[[KEPT]][%[[I]]]
// CHECK:           %[[ALL:.*]] = lacis.level_loop "j"<part "few"> {{.*}} iter(%{{.*}} = %[[BEGIN]])
// CHECK-NOT:       "rest.j"
// CHECK:           %[[MINUS:.*]] = arith.negf %[[ALL]]
// CHECK:           lacis.write %[[MINUS]] to %[[Y]][%[[I]]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<few = #csr when nnz(i) lt 4, rest = #csr>
func.func @rest(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.precompute<part = "rest">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %few = lacis.part "few" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  %rest = lacis.part "rest" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    %a = lacis.locate %few[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j"<part "few"> %few[1] at %a (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %few at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %b = lacis.locate %rest[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %t = lacis.level_loop "j"<part "rest"> %rest[1] at %b (%p, %j) iter(%acc = %s) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %rest at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %minus = arith.negf %t : f32
    lacis.write %minus to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// The second part adds to what the first kept, in a layout that may be said once more; it may stand first in the sum.
// CHECK-LABEL: func.func @two(
// CHECK:         %[[KEPT:.*]] = lacis.workspace({{.*}} : tensor<?xf32, #lacis.format<(i) -> (i floordiv 4 : dense, i mod 4 : dense)>>
// CHECK:         lacis.loop "i"<part "b">
// CHECK:           lacis.level_loop "j"<part "b"> {{.*}} iter(%{{.*}} = %cst)
// CHECK:         lacis.loop "i"<part "a">
// CHECK:           %[[BEGIN:.*]] = lacis.read %[[KEPT]]
// CHECK:           %[[SUM:.*]] = lacis.level_loop "j"<part "a"> {{.*}} iter(%{{.*}} = %[[BEGIN]])
// CHECK:           lacis.write %[[SUM]] to %[[KEPT]]
// CHECK:         lacis.loop "i"
// CHECK:           %[[BEGIN:.*]] = lacis.read %[[KEPT]]
// CHECK:           %[[SUM:.*]] = lacis.level_loop "j"<part "c"> {{.*}} iter(%{{.*}} = %[[BEGIN]])
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#sum = #lacis.sum<a = #csr when nnz(i) lt 4, b = #csr when nnz(i) lt 8, c = #csr>
#strips = #lacis.format<(i) -> (i floordiv 4 : dense, i mod 4 : dense)>
func.func @two(%w: tensor<?x?xf32, #sum> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.precompute<part = "b", layout = #strips>,
                               #lacis.precompute<part = "a", layout = #strips>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %a = lacis.part "a" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  %b = lacis.part "b" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  %c = lacis.part "c" of %w : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  lacis.loop "i" %i to %n {
    %s = lacis.level_loop "j"<part "a"> %a[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %a at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %t = lacis.level_loop "j"<part "b"> %b[1] at %i (%p, %j) iter(%acc = %s) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %b at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    %u = lacis.level_loop "j"<part "c"> %c[1] at %i (%p, %j) iter(%acc = %t) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %c at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %u to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
