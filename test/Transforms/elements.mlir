// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-linalg-to-loops | FileCheck %s

// An element of a tensor at a place that the statement computes is read there.
// CHECK-LABEL: func.func @relative(
// CHECK-SAME:    %[[TABLE:[^:]*]]: tensor<?xf32>
// CHECK:         lacis.loop "i" %[[I:.*]] to
// CHECK:           lacis.loop "j" %[[J:.*]] to
// CHECK:             %[[PLACE:.*]] = arith.subi %[[I]], %[[J]] : index
// CHECK:             %[[ELEMENT:.*]] = lacis.read %[[TABLE]][%[[PLACE]]] : tensor<?xf32> -> f32
// CHECK:             arith.addf %{{.*}}, %[[ELEMENT]]
func.func @relative(%t: tensor<?xf32>, %x: tensor<?x?xf32>, %e: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%x : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index  %j = linalg.index 1 : index
    %place = arith.subi %i, %j : index
    %element = tensor.extract %t[%place] : tensor<?xf32>
    %sum = arith.addf %a, %element : f32
    linalg.yield %sum : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
