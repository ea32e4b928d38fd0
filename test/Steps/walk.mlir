// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-choose-walks | FileCheck %s

// The operand's own order begins with the axis: nothing is derived.
// CHECK-LABEL: func.func @own(
// CHECK-NOT:     = lacis.walk
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @own(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.walk<operand = "w", axes = ["i", "j"]>]} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #csr>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// It does not: the companion whose axes come in this order is walked.
// CHECK-LABEL: func.func @companion(
// CHECK:         lacis.walk {{.*}} (i : dense, j : compressed<unique=false>)>
#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
func.func @companion(%w: tensor<?x?xf32, #coo> {lacis.name = "w"}, %x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.walk<operand = "w", axes = ["i"]>]} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #coo>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+1 {{walk: in this order two units meet in one element of the output; operand 'w' is walked by the axes that the output has first, 'i'; split_nnz of 'i_j' and race of 'i_j0' share its entries out to units that meet}}
func.func @meet(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.walk<operand = "w", axes = ["j"]>]} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #csr>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+1 {{walk: operand 'w' has no axis "k"}}
func.func @no_axis(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.walk<operand = "w", axes = ["k"]>]} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #csr>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
