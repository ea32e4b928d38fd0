// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-vectorize-loops | FileCheck %s

#tile = #lacis.format<(i) -> (i : dense)>

// What lanes past the end write to a tile with an element for each, nobody reads: the same guard stands around the read,
// of what another operand says is the size of `b`.
// CHECK-LABEL: func.func @guarded(
// CHECK:         lacis.write %{{.*}} to %{{.*}}[%{{.*}}] along 0 : vector<4xf32>
// CHECK:         lacis.write %{{.*}} to %arg1[%{{.*}}] along 0 count
func.func @guarded(%x: tensor<?xf32> {lacis.axes = ["b"]}, %y: tensor<?xf32> {lacis.axes = ["b"]}, %first: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %tile = lacis.workspace(%c4) place<private> : tensor<?xf32, #tile>
  lacis.loop "b1" %b1 to %c4 {
    %b = arith.addi %first, %b1 : index
    %inside = arith.cmpi slt, %b, %n : index
    scf.if %inside {
      %v = lacis.read %x[%b] : tensor<?xf32> -> f32
      lacis.write %v to %tile[%b1] : f32 to tensor<?xf32, #tile>
    }
    lacis.yield
  } vectorize<4>
  lacis.loop "b2" %b2 to %c4 {
    %b = arith.addi %first, %b2 : index
    %inside = arith.cmpi slt, %b, %m : index
    scf.if %inside {
      %v = lacis.read %tile[%b2] : tensor<?xf32, #tile> -> f32
      lacis.write %v to %y[%b] : f32 to tensor<?xf32>
    }
    lacis.yield
  } vectorize<4>
  return
}

// -----

#tile = #lacis.format<(i) -> (i : dense)>

// All of the tile is read, where lanes past the end keep what stood there.
// CHECK-LABEL: func.func @read_whole(
// CHECK:         lacis.write %{{.*}} to %[[TILE:.*]][%{{.*}}] along 0 : vector<4xf32>
// CHECK:         lacis.write %{{.*}} to %[[TILE]][%{{.*}}] along 0 count
func.func @read_whole(%x: tensor<?xf32>, %y: tensor<?xf32>, %first: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %tile = lacis.workspace(%c4) place<private> : tensor<?xf32, #tile>
  lacis.loop "b0" %b0 to %c4 {
    lacis.write %one to %tile[%b0] : f32 to tensor<?xf32, #tile>
    lacis.yield
  } vectorize<4>
  lacis.loop "b1" %b1 to %c4 {
    %b = arith.addi %first, %b1 : index
    %inside = arith.cmpi slt, %b, %n : index
    scf.if %inside {
      %v = lacis.read %x[%b] : tensor<?xf32> -> f32
      lacis.write %v to %tile[%b1] : f32 to tensor<?xf32, #tile>
    }
    lacis.yield
  } vectorize<4>
  lacis.loop "b2" %b2 to %c4 {
    %v = lacis.read %tile[%b2] : tensor<?xf32, #tile> -> f32
    lacis.write %v to %y[%b2] : f32 to tensor<?xf32>
    lacis.yield
  } vectorize<4>
  return
}

// -----

#tile = #lacis.format<(i) -> (i : dense)>

// The guard is that of another element than is read.
// CHECK-LABEL: func.func @read_another(
// CHECK:         lacis.write %{{.*}} to %{{.*}}[%{{.*}}] along 0 count
func.func @read_another(%x: tensor<?xf32>, %y: tensor<?xf32>, %first: index, %other: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %tile = lacis.workspace(%c4) place<private> : tensor<?xf32, #tile>
  lacis.loop "b1" %b1 to %c4 {
    %b = arith.addi %first, %b1 : index
    %inside = arith.cmpi slt, %b, %n : index
    scf.if %inside {
      %v = lacis.read %x[%b] : tensor<?xf32> -> f32
      lacis.write %v to %tile[%b1] : f32 to tensor<?xf32, #tile>
      %w = lacis.read %tile[%other] : tensor<?xf32, #tile> -> f32
      lacis.write %w to %y[%b] : f32 to tensor<?xf32>
    }
    lacis.yield
  } vectorize<4>
  return
}
