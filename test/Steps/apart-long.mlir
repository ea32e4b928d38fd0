// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-choose-walks -lacis-linalg-to-loops -lacis-apply-steps | FileCheck %s

// Rows with at least 256 entries walk a list, in equal shares; the nest itself keeps the shorter ones. What adds up the parts
// of long rows stands behind both: they share a launch, which it follows.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[W:[^:]*]]: tensor
// CHECK-SAME:    lacis.apart = ["long"], lacis.classes = {{\[\["long"\]\]}}
// CHECK-DAG:     %[[LIST:.*]] = lacis.walk %[[W]] least 256
// CHECK-DAG:     %[[ROOM:.*]] = lacis.positions %[[LIST]][0]
// CHECK-DAG:     %[[ENTRIES:.*]] = lacis.positions %[[LIST]][1]
// CHECK:         lacis.loop "j0"<part "long", rows "i", part "long">
// CHECK:           lacis.owner %[[LIST]][1] of %{{.*}} in %[[ROOM]]
// CHECK:           lacis.loop "i"<part "long">
// CHECK:             %[[ROW:.*]], %{{.*}} = lacis.coordinate %[[LIST]][0]
// CHECK:             lacis.loop "j"<part "long">
// CHECK:               %[[SLOT:.*]] = lacis.locate %[[LIST]][2] at
// CHECK:               lacis.value %[[LIST]] at %[[SLOT]]
// CHECK:             lacis.write %{{.*}} to %{{.*}}[%[[ROW]]]
// CHECK:         lacis.loop "i"
// CHECK:           %[[LO:.*]], %[[HI:.*]] = lacis.bounds %[[W]][1]
// CHECK:           %[[COUNT:.*]] = arith.subi %[[HI]], %[[LO]]
// CHECK:           %[[LIMIT:.*]] = arith.constant 256
// CHECK:           %[[FEW:.*]] = arith.cmpi slt, %[[COUNT]], %[[LIMIT]]
// CHECK:           scf.if %[[FEW]]
// CHECK:             lacis.level_loop "j" %[[W]][1]
// CHECK:         lacis.loop "i"<part "long", rows "i", part "long", nest "j", part "long">
// CHECK:           lacis.loop "j0"<part "long", rows "i", part "long", nest "j", part "long", rows "i", part "long">
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.apart<part = "long", least = 256>, #lacis.split_nnz<loop = "long.i_long.j", factor = 512>]} {
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%init : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #csr>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @no_list(%w: tensor<?x?xf32, #csr>) {
  // expected-error @+1 {{'least' is a positive number, of a companion that lists its rows}}
  %all = lacis.walk %w least 2 : tensor<?x?xf32, #csr> to tensor<?x?xf32, #csr>
  return
}
