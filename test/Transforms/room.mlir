// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops -lacis-lower-levels | FileCheck %s

// Every slot of the output is set, so it need not begin as zeros.
// CHECK: zero = false
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>]
func.func @exact(%p: !lacis.pattern<?x?, #csr>, %a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32, #csr> {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %sum = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%zero : tensor<?x?xf32, #csr>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #csr>
  return %sum : tensor<?x?xf32, #csr>
}

// -----

// No loop comes to the slots behind the last position; the nest is the same.
// CHECK: zero = true
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>]
func.func @room(%p: !lacis.pattern<?x?, #csr>, %a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?x?xf32, #csr>
    attributes {lacis.room} {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %sum = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%zero : tensor<?x?xf32, #csr>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #csr>
  return %sum : tensor<?x?xf32, #csr>
}
