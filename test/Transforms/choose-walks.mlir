// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-choose-walks | FileCheck %s

// Rows of CSR are located: each output has one owner.
// CHECK-LABEL: func.func @csr(
// CHECK-NOT:     lacis.walk
#format = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @csr(%w: tensor<?x?xf32, #format>, %x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%w, %x : tensor<?x?xf32, #format>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Columns of CSC would race for an output: the companion by rows is walked.
// CHECK-LABEL: func.func @csc(
// CHECK:         lacis.walk {{.*}} to tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed<unique=false>, link)>>
#format = #lacis.format<(i, j) -> (j : dense, i : compressed)>
func.func @csc(%w: tensor<?x?xf32, #format>, %x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%w, %x : tensor<?x?xf32, #format>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// A kind without code is refused by name.
#format = #lacis.format<(i, j) -> (i : dense, j : var*fn)>
func.func @refused(%w: tensor<?x?xf32, #format>, %x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{level kind 'fn' (level 1) has no code yet}}
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%w, %x : tensor<?x?xf32, #format>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Rows of diagonals are located: j follows from i and d.
#dia = #lacis.format<(i, j) let d = j - i -> (d : compressed, i : range)>
// CHECK-LABEL: func @diagonals(
// CHECK-NOT:     lacis.walk
func.func @diagonals(%w: tensor<?x?xf32, #dia>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%w : tensor<?x?xf32, #dia>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Where i and d are levels, j would follow once more: columns are walked by the companion.
#shifted = #lacis.format<(i, j) let d = j - i -> (i : dense, d : compressed)>
// CHECK-LABEL: func @columns(
// CHECK:         lacis.walk %{{.*}} to tensor<?x?xf32, #lacis.format<(i, j) -> (j : dense, i : compressed<unique=false>, link)>>
func.func @columns(%w: tensor<?x?xf32, #shifted>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
                       iterator_types = ["reduction", "parallel"]}
      ins(%w : tensor<?x?xf32, #shifted>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
