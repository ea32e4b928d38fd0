// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// A product sampled on a pattern goes entry by entry, in the order of the slots; what holds no entry is not set.
// CHECK-LABEL: func.func @csr(
// CHECK-SAME:    %[[P:[^:]*]]: tensor<?x?xi1, {{.*}} %[[A:[^:]*]]: tensor<?x?xf32>{{.*}} %[[B:[^:]*]]: tensor<?x?xf32>{{.*}} %[[Y:[^:]*]]: tensor<{{.*}}lacis.sample = 0
// CHECK:         %[[W:.*]] = lacis.walk %[[P]] {{.*}} (i : compressed<unique=false>, j : singleton)>>
// CHECK:         %[[ROOM:.*]] = lacis.positions %[[W]][0]
// CHECK:         lacis.loop "i_j" %[[N:.*]] to %[[ROOM]]
// CHECK:           %[[LO:.*]], %[[HI:.*]] = lacis.bounds %[[W]][0]
// CHECK:           %[[POS:.*]] = arith.addi %[[LO]], %[[N]]
// CHECK:           arith.cmpi slt, %[[POS]], %[[HI]]
// CHECK:             %[[I:.*]], %{{.*}} = lacis.coordinate %[[W]][0] at %[[POS]]
// CHECK:             %[[J:.*]], %{{.*}} = lacis.coordinate %[[W]][1] at %[[POS]]
// CHECK:             %[[SUM:.*]] = lacis.loop "k" %[[K:.*]] to
// CHECK:               lacis.read %[[A]][%[[I]], %[[K]]]
// CHECK:               lacis.read %[[B]][%[[J]], %[[K]]]
// CHECK:             lacis.set %[[SUM]] to %[[Y]] at %[[POS]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
func.func @csr(%p: !lacis.pattern<?x?, #csr>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32, #csr> {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %sum = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["i", "j", "k"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%zero : tensor<?x?xf32, #csr>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #csr>
  return %sum : tensor<?x?xf32, #csr>
}

// -----

// The values of the pattern's own tensor take part; COO's positions are its entries already.
// CHECK-LABEL: func.func @coo(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, {{.*}} %[[X:[^:]*]]: tensor<?x?xf32>
// CHECK-NOT:     lacis.walk
// CHECK:         lacis.loop "i_j"
// CHECK:           %[[V:.*]] = lacis.value %[[W]] at %[[POS:[0-9]+]] :
// CHECK:           lacis.read %[[X]]
// CHECK:           lacis.set %{{.*}} at %[[POS]]
#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
#map = affine_map<(i, j) -> (i, j)>
func.func @coo(%w: tensor<?x?xf32, #coo>, %x: tensor<?x?xf32>) -> tensor<?x?xf32, #coo> {
  %zero = lacis.zeros %w : tensor<?x?xf32, #coo> to tensor<?x?xf32, #coo>
  %y = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #coo>, tensor<?x?xf32>) outs(%zero : tensor<?x?xf32, #coo>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<?x?xf32, #coo>
  return %y : tensor<?x?xf32, #coo>
}

// -----

// Padding inside a stored block keeps its zero.
// CHECK-LABEL: func.func @bsr(
// CHECK:         lacis.loop "i0_j0"
// CHECK:           lacis.loop "i1"
// CHECK:             lacis.loop "j1"
// CHECK:               %[[ENTRY:.*]] = lacis.entry
// CHECK:               %[[V:.*]] = arith.select %[[ENTRY]], %{{.*}}, %cst
// CHECK:               lacis.set %[[V]]
#bsr = #lacis.format<(i, j) -> (i floordiv 4 : dense, j floordiv 4 : compressed, i mod 4 : dense, j mod 4 : dense)>
#map = affine_map<(i, j) -> (i, j)>
func.func @bsr(%p: !lacis.pattern<?x?, #bsr>, %x: tensor<?x?xf32>) -> tensor<?x?xf32, #bsr> {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #bsr> to tensor<?x?xf32, #bsr>
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%x : tensor<?x?xf32>) outs(%zero : tensor<?x?xf32, #bsr>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #bsr>
  return %y : tensor<?x?xf32, #bsr>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#map = affine_map<(i, j) -> (i, j)>
func.func @two(%p: !lacis.pattern<?x?, #csr>, %w: tensor<?x?xf32, #csr>) -> tensor<?x?xf32, #csr> {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  // expected-error @below {{operand 0 has a pattern of its own; operands with formats share one pattern}}
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #csr>) outs(%zero : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %old: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #csr>
  return %y : tensor<?x?xf32, #csr>
}
