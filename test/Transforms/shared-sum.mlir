// SPDX-License-Identifier: Apache-2.0
// Two statements of one entry read one sum: its loop is there once.
// RUN: lacis-opt %s -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>

// CHECK-LABEL: func.func @kernel
// CHECK: lacis.loop "i_j"
// CHECK: %[[SUM:.*]] = lacis.loop "d"
// CHECK-NOT: lacis.loop
// CHECK: %[[SHARE:.*]] = math.exp %[[SUM]]
// CHECK: arith.mulf %[[SHARE]], %[[SUM]]
func.func @kernel(%q: tensor<?x8xf32> {lacis.name = "q"}, %k: tensor<?x8xf32> {lacis.name = "k"},
                  %p: !lacis.pattern<?x?, #csr> {lacis.name = "p"}) -> tensor<?x?xf32, #csr> {
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %s = linalg.generic {
      indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["i", "j", "d"], lacis.name = "s"}
      ins(%q, %k : tensor<?x8xf32>, tensor<?x8xf32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<?x?xf32, #csr>
  %e = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"], lacis.name = "e"}
      ins(%s : tensor<?x?xf32, #csr>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %b: f32):
    %x = math.exp %a : f32
    linalg.yield %x : f32
  } -> tensor<?x?xf32, #csr>
  %o = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"], lacis.name = "o"}
      ins(%e, %s : tensor<?x?xf32, #csr>, tensor<?x?xf32, #csr>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %x = arith.mulf %a, %b : f32
    linalg.yield %x : f32
  } -> tensor<?x?xf32, #csr>
  return %o : tensor<?x?xf32, #csr>
}
