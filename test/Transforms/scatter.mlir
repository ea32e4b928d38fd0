// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// A dense output with every letter of the operand: the nest runs over the entries, inside them over what they lack.
// CHECK-LABEL: func.func @around(
// CHECK-SAME:    lacis.scatter
// CHECK:         %[[W:.*]] = lacis.walk %arg0
// CHECK:         lacis.loop "i_j"
// CHECK:           lacis.coordinate %[[W]][0] at %[[N:.*]] from
// CHECK:           lacis.loop "k" %[[K:.*]] to
// CHECK:             lacis.value %[[W]] at
// CHECK:             lacis.write %{{.*}} to %arg2[%{{.*}}, %{{.*}}, %[[K]]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j, k) -> (i, j)>, affine_map<(i, j, k) -> (k)>, affine_map<(i, j, k) -> (i, j, k)>]
func.func @around(%w: tensor<?x?xf32, #csr>, %x: tensor<?xf32>) -> tensor<?x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
  %j = tensor.dim %w, %c1 : tensor<?x?xf32, #csr>
  %k = tensor.dim %x, %c0 : tensor<?xf32>
  %empty = tensor.empty(%i, %j, %k) : tensor<?x?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["i", "j", "k"]}
      ins(%w, %x : tensor<?x?xf32, #csr>, tensor<?xf32>) outs(%init : tensor<?x?x?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?xf32>
  return %y : tensor<?x?x?xf32>
}

// -----

// Elsewhere it is zero, so it cannot begin as another number.
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>]
func.func @ones(%w: tensor<?x?xf32, #csr>, %x: tensor<?xf32>) -> tensor<?x?xf32> {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = tensor.dim %w, %c0 : tensor<?x?xf32, #csr>
  %j = tensor.dim %w, %c1 : tensor<?x?xf32, #csr>
  %empty = tensor.empty(%i, %j) : tensor<?x?xf32>
  %init = linalg.fill ins(%one : f32) outs(%empty : tensor<?x?xf32>) -> tensor<?x?xf32>
  // expected-error @+1 {{an output with every letter of a sparse operand begins as zeros}}
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #csr>, tensor<?xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Nor can anything be added to it elsewhere.
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#map = affine_map<(i, j) -> (i, j)>
func.func @added(%w: tensor<?x?xf32, #csr>, %x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%x : tensor<?x?xf32>) -> tensor<?x?xf32>
  %dense = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #csr>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  // expected-error @+1 {{an output with every letter of a sparse operand is zero elsewhere; nothing is added to it}}
  %y = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%dense, %x : tensor<?x?xf32>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %old: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
