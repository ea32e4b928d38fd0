// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-vectorize-loops | FileCheck %s

// Lanes that compute their places read an element each.
// CHECK-LABEL: func.func @backwards(
// CHECK-SAME:    %[[TABLE:[^:]*]]: tensor<?xf32>
// CHECK:         %[[PLACES:.*]] = arith.subi %{{.*}}, %{{.*}} : vector<4xi32>
// CHECK:         vector.extract %[[PLACES]][0] : i32 from vector<4xi32>
// CHECK:         lacis.read %[[TABLE]]
// CHECK:         vector.extract %[[PLACES]][3] : i32 from vector<4xi32>
// CHECK:         lacis.read %[[TABLE]]
// CHECK:         lacis.write %{{.*}} : vector<4xf32> to tensor<?xf32>
func.func @backwards(%t: tensor<?xf32>, %y: tensor<?xf32>, %last: i32) {
  %four = arith.constant 4 : index
  lacis.loop "j" %j to %four {
    %number = arith.index_cast %j : index to i32
    %behind = arith.subi %last, %number : i32
    %place = arith.index_cast %behind : i32 to index
    %element = lacis.read %t[%place] : tensor<?xf32> -> f32
    lacis.write %element to %y[%j] : f32 to tensor<?xf32>
    lacis.yield
  } vectorize<4>
  return
}

// Lanes past the end read where the first one does.
// CHECK-LABEL: func.func @tail(
// CHECK:         %[[INSIDE:.*]] = lacis.lanes
// CHECK:         arith.select %[[INSIDE]], %{{.*}}, %{{.*}} : vector<4xi1>, vector<4xi32>
func.func @tail(%t: tensor<?xf32>, %y: tensor<?xf32>, %last: i32, %n: index) {
  %four = arith.constant 4 : index
  lacis.loop "j0" %j0 to %n {
    lacis.loop "j1" %j1 to %four {
      %first = arith.muli %j0, %four : index
      %j = arith.addi %first, %j1 : index
      %isThere = arith.cmpi slt, %j, %n : index
      scf.if %isThere {
        %number = arith.index_cast %j : index to i32
        %behind = arith.subi %last, %number : i32
        %place = arith.index_cast %behind : i32 to index
        %element = lacis.read %t[%place] : tensor<?xf32> -> f32
        lacis.write %element to %y[%j] : f32 to tensor<?xf32>
      }
      lacis.yield
    } vectorize<4>
    lacis.yield
  }
  return
}
