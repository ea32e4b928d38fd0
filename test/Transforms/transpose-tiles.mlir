// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-vectorize-loops | FileCheck %s

// Rows of x are columns of t.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?x?xf32>, %[[T:[^:]*]]: tensor<?x?xf32>
// CHECK-NOT:     lacis.loop "b1"
// CHECK:         lacis.copy_transposed 4 of %[[X]][%{{.*}}, %{{.*}}] rows 0 along 1 to %[[T]][%{{.*}}, %{{.*}}] rows 0 along 1
func.func @whole(%x: tensor<?x?xf32>, %t: tensor<?x?xf32>, %n: index) {
  %c4 = arith.constant 4 : index
  lacis.loop "j0" %j0 to %n {
    lacis.loop "b1" %b to %c4 {
      lacis.loop "j1" %j1 to %c4 {
        %first = arith.muli %j0, %c4 : index
        %j = arith.addi %first, %j1 : index
        %v = lacis.read %x[%b, %j] : tensor<?x?xf32> -> f32
        lacis.write %v to %t[%j, %b] : f32 to tensor<?x?xf32>
        lacis.yield
      } vectorize<4>
      lacis.yield
    } vectorize<4>
    lacis.yield
  }
  return
}

// -----

// A tile whose last element lies past the end of an axis is copied element by element.
// CHECK-LABEL: func.func @edge(
// CHECK:         %[[LAST:.*]] = arith.cmpi slt
// CHECK:         scf.if %[[LAST]] {
// CHECK:           lacis.copy_transposed 2 of
// CHECK:         } else {
// CHECK:           lacis.loop "b1"
// CHECK:             lacis.loop "j1"
// CHECK:               scf.if
func.func @edge(%x: tensor<?x?xf32>, %t: tensor<?x?xf32>, %n: index, %size: index) {
  %c2 = arith.constant 2 : index
  lacis.loop "j0" %j0 to %n {
    lacis.loop "b1" %b to %c2 {
      lacis.loop "j1" %j1 to %c2 {
        %first = arith.muli %j0, %c2 : index
        %j = arith.addi %first, %j1 : index
        %inside = arith.cmpi slt, %j, %size : index
        scf.if %inside {
          %v = lacis.read %x[%b, %j] : tensor<?x?xf32> -> f32
          lacis.write %v to %t[%j, %b] : f32 to tensor<?x?xf32>
        }
        lacis.yield
      } vectorize<2>
      lacis.yield
    } vectorize<2>
    lacis.yield
  }
  return
}

// -----

func.func @same(%x: tensor<?x?xf32>, %t: tensor<?x?xf32>) {
  %c2 = arith.constant 2 : index
  // expected-error @+1 {{vectorize: loops 'b' and 'j' stand one in the other and copy no tile to its transpose}}
  lacis.loop "b" %b to %c2 {
    lacis.loop "j" %j to %c2 {
      %v = lacis.read %x[%b, %j] : tensor<?x?xf32> -> f32
      lacis.write %v to %t[%b, %j] : f32 to tensor<?x?xf32>
      lacis.yield
    } vectorize<2>
    lacis.yield
  } vectorize<2>
  return
}
