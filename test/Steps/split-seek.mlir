// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps -lacis-lower-levels | FileCheck %s --check-prefix=SEARCH

// A row is cut into strips of coordinates; where one begins and ends is found by seek, and the strips carry the sum on.
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[STRIPS:.*]] = arith.ceildivui
// CHECK:         lacis.loop "i"
// CHECK:           %[[LO:.*]], %[[HI:.*]] = lacis.bounds
// CHECK:           lacis.loop "j0" %[[J0:.*]] to %[[STRIPS]] iter(%[[OUTER:.*]] = %{{.*}}) -> (f32)
// CHECK:             %[[FROM:.*]] = lacis.seek %{{.*}}[1] from %[[LO]] to %[[HI]] of
// CHECK:             %[[TO:.*]] = lacis.seek %{{.*}}[1] from %[[FROM]] to %[[HI]] of
// CHECK:             %[[COUNT:.*]] = arith.subi %[[TO]], %[[FROM]]
// CHECK:             lacis.loop "j1" %[[J1:.*]] to %[[COUNT]] iter(%{{.*}} = %[[OUTER]]) -> (f32)
// CHECK:               arith.addi %[[FROM]], %[[J1]]
// SEARCH-LABEL: func.func @rows(
// SEARCH-COUNT-2: scf.while
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #csr> {lacis.name = "w", lacis.axes = ["i", "j"]}, %y: tensor<?xf32> {lacis.name = "y", lacis.axes = ["i"], lacis.output})
    attributes {lacis.kernel, lacis.steps = [#lacis.split<loop = "j", factor = 64>]} {
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
