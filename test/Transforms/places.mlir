// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-choose-walks=rows=true -lacis-linalg-to-loops | FileCheck %s

// Where coordinates are narrow, a link by columns is the place in the row, and the slot lies so far behind its first.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME:    %[[W:[^:]*]]: tensor
// CHECK:         %[[WALK:.*]] = lacis.walk %[[W]] {{.*}} (j : dense, i : compressed<unique=false, crd=i16>, link<pos=i16>)>>
// CHECK:         lacis.level_loop "i" %[[WALK]][1] {{.*}} (%[[P:.*]], %[[I:.*]]) iter
// CHECK:           %[[PLACE:.*]] = lacis.locate %[[WALK]][2] at %[[P]]()
// CHECK:           %[[ROW:.*]] = lacis.locate %[[W]][0] at %{{.*}}(%[[I]])
// CHECK:           %[[FIRST:.*]], %{{.*}} = lacis.bounds %[[W]][1] at %[[ROW]]
// CHECK:           %[[SLOT:.*]] = arith.addi %[[FIRST]], %[[PLACE]]
// CHECK:           lacis.value %[[WALK]] at %[[SLOT]]
#narrow = #lacis.format<(i, j) -> (i : dense<crd=i16>, j : compressed<crd=i16>)>
func.func @columns(%w: tensor<?x?xf32, #narrow>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #narrow>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Rows that may hold a coordinate more than once have more places than these bits count.
// CHECK-LABEL: func.func @repeated(
// CHECK:         lacis.walk {{.*}} link)>>
#repeated = #lacis.format<(i, j) -> (i : dense<crd=i16>, j : compressed<unique=false, crd=i16>), multiset>
func.func @repeated(%w: tensor<?x?xf32, #repeated>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #repeated>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
