// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// A diagonal is found for each row; the column follows, and is tested.
// CHECK-LABEL: func.func @diagonals(
// CHECK:         lacis.loop "i" %[[I:[^ ]*]] to
// CHECK:           lacis.level_loop "d" %{{.*}}[0] at %{{.*}} (%[[P:[^,]*]], %[[D:[^)]*]])
// CHECK:             %[[SHIFT:.*]] = arith.subi %[[D]], %{{.*}}
// CHECK:             %[[J:.*]] = arith.addi %[[I]], %[[SHIFT]]
// CHECK:             arith.cmpi sge, %[[J]]
// CHECK:             arith.cmpi slt, %[[J]]
// CHECK:             scf.if
// CHECK:               %[[AT:.*]] = lacis.locate %{{.*}}[1] at %[[P]](%[[J]])
// CHECK:               lacis.value %{{.*}} at %[[AT]]
#dia = #lacis.format<(i, j) let d = j - i -> (d : compressed, j : range)>
func.func @diagonals(%w: tensor<?x?xf32, #dia>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #dia>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Rows run in the order that is stored, and each is written once.
// CHECK-LABEL: func.func @slices(
// CHECK:         lacis.loop "i0"
// CHECK:           lacis.loop "i1"
// CHECK:             scf.if
// CHECK:               %[[I:.*]] = lacis.lookup %{{.*}}[0] at
// CHECK:               lacis.level_loop "s" %{{.*}}[1]
// CHECK:                 lacis.locate %{{.*}}[2]
// CHECK:                 lacis.level_loop "j" %{{.*}}[3]
// CHECK:               lacis.write %{{.*}} to %{{.*}}[%[[I]]]
#sell = #lacis.format<(i, j) let r = rank(i by nnz within 128), s = slot(j in i)
                      -> (r floordiv 32 : dense, s : ragged, r mod 32 : dense, j : singleton<pad=true>)>
func.func @slices(%w: tensor<?x?xf32, #sell>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #sell>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// A row that follows from a diagonal and the column is one of the block of rows that the diagonal is listed with.
// CHECK-LABEL: func.func @blocks_of_rows(
// CHECK:         lacis.level_loop "d_i0" %{{.*}}[0] at %{{.*}} (%{{.*}}, %[[D:[^,]*]], %[[BLOCK:[^)]*]])
// CHECK:           %[[ROW:.*]] = arith.subi %[[D]], %{{.*}}
// CHECK:           %[[ITS:.*]] = arith.divui %[[ROW]], %{{.*}}
// CHECK:           arith.cmpi eq, %[[ITS]], %[[BLOCK]]
// CHECK:           scf.if
// CHECK:             lacis.locate %{{.*}}[1]
#blocked = #lacis.format<(i, j) let d = i + j -> ((d, i floordiv 4) : var*delta<8>, i mod 4 : range)>
func.func @blocks_of_rows(%w: tensor<?x?xf32, #blocked>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(j, i) -> (i, j)>, affine_map<(j, i) -> (j)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["j", "i"]}
      ins(%w : tensor<?x?xf32, #blocked>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
