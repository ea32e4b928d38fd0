// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-vectorize-loops | FileCheck %s

// The lanes of a strip of a strip end where the first of both does.
// CHECK-LABEL: func.func @strip_of_strip(
// CHECK:         %[[STRIP:.*]] = arith.subi %[[C6:.*]], %{{.*}} : index
// CHECK:         %[[REST:.*]] = arith.subi %{{.*}}, %[[FIRST:.*]] : index
// CHECK:         %[[COUNT:.*]] = arith.minsi %[[STRIP]], %[[REST]] : index
// CHECK:         lacis.read %{{.*}}[%[[FIRST]]] along 0 count %[[COUNT]]
func.func @strip_of_strip(%x: tensor<?xf32> {lacis.divisible = array<i64: 32>}, %y: tensor<?xf32>, %k0: index, %k10: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  lacis.loop "k11" %k11 to %c4 {
    %part = arith.muli %k10, %c4 : index
    %k1 = arith.addi %part, %k11 : index
    %in_strip = arith.cmpi slt, %k1, %c6 : index
    scf.if %in_strip {
      %scaled = arith.muli %k0, %c6 : index
      %k = arith.addi %scaled, %k1 : index
      %inside = arith.cmpi slt, %k, %n : index
      scf.if %inside {
        %v = lacis.read %x[%k] : tensor<?xf32> -> f32
        lacis.write %v to %y[%k] : f32 to tensor<?xf32>
      }
    }
    lacis.yield
  } vectorize<4>
  return
}

// -----

// Where size and beginning are multiples of the width, all lanes lie inside, or none.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT:     count
// CHECK:         scf.if
// CHECK-NEXT:      lacis.read %{{.*}} along 0 :
func.func @whole(%x: tensor<?xf32> {lacis.divisible = array<i64: 8>}, %y: tensor<?xf32>, %k0: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  lacis.loop "k1" %k1 to %c4 {
    %scaled = arith.muli %k0, %c4 : index
    %k = arith.addi %scaled, %k1 : index
    %inside = arith.cmpi slt, %k, %n : index
    scf.if %inside {
      %v = lacis.read %x[%k] : tensor<?xf32> -> f32
      lacis.write %v to %y[%k] : f32 to tensor<?xf32>
    }
    lacis.yield
  } vectorize<4>
  return
}

// -----

// Two conditions at once leave the lanes that both leave.
// CHECK-LABEL: func.func @both(
// CHECK:         %[[COUNT:.*]] = arith.minsi
// CHECK:         lacis.write %{{.*}} count %[[COUNT]]
func.func @both(%y: tensor<?xf32>, %v: f32, %k0: index, %n: index, %m: index) {
  %c4 = arith.constant 4 : index
  lacis.loop "k1" %k1 to %c4 {
    %k = arith.addi %k0, %k1 : index
    %below_n = arith.cmpi slt, %k, %n : index
    %below_m = arith.cmpi slt, %k, %m : index
    %inside = arith.andi %below_n, %below_m : i1
    scf.if %inside {
      lacis.write %v to %y[%k] : f32 to tensor<?xf32>
    }
    lacis.yield
  } vectorize<4>
  return
}

// -----

// Of stored neighbours only those inside are loaded: the array may end behind them.
// CHECK-LABEL: func.func @stored(
// CHECK:         %[[COUNT:.*]] = arith.subi
// CHECK:         %[[WHOLE:.*]] = arith.cmpi sge, %[[COUNT]], %{{.*}} : index
// CHECK:         scf.if %[[WHOLE]] -> (vector<4xf32>)
// CHECK-NEXT:      lacis.value %{{.*}} -> vector<4xf32>
// CHECK:         else
// CHECK:           scf.if %{{.*}} -> (f32)
// CHECK:             lacis.value %{{.*}} -> f32
// CHECK:           vector.from_elements
#blocks = #lacis.format<(i, j) -> (i floordiv 3 : dense, j floordiv 6 : compressed, i mod 3 : dense, j mod 6 : dense)>
func.func @stored(%w: tensor<?x?xf32, #blocks>, %y: tensor<?xf32>, %row: index, %j10: index) {
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  lacis.loop "j11" %j11 to %c4 {
    %part = arith.muli %j10, %c4 : index
    %j1 = arith.addi %part, %j11 : index
    %inside = arith.cmpi slt, %j1, %c6 : index
    scf.if %inside {
      %place = lacis.locate %w[3] at %row(%j1) : tensor<?x?xf32, #blocks>
      %v = lacis.value %w at %place : tensor<?x?xf32, #blocks> -> f32
      lacis.write %v to %y[%j1] : f32 to tensor<?xf32>
    }
    lacis.yield
  } vectorize<4>
  return
}
