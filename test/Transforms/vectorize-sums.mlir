// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-vectorize-loops | FileCheck %s

// A sum carries one sum a lane through the loops that pass it on; a lane past the end keeps its sum.
// CHECK-LABEL: func.func @dot(
// CHECK:         %[[SUMS:.*]] = lacis.loop "k0" %{{.*}} to %{{.*}} iter(%[[ACC:.*]] = %{{.*}}) -> (vector<8xf32>)
// CHECK:           %[[A:.*]] = lacis.read %{{.*}} along 0 count %[[COUNT:.*]] : tensor<?xf32> -> vector<8xf32>
// CHECK:           %[[NEXT:.*]] = arith.addf %[[ACC]], %{{.*}} : vector<8xf32>
// CHECK:           %[[ACTIVE:.*]] = lacis.lanes %[[COUNT]] : vector<8xi1>
// CHECK:           %[[KEPT:.*]] = arith.select %[[ACTIVE]], %[[NEXT]], %[[ACC]]
// CHECK:           lacis.yield %[[KEPT]]
// CHECK:         vector.reduction <add>, %[[SUMS]], %{{.*}} fastmath<reassoc> : vector<8xf32> into f32
func.func @dot(%a: tensor<?xf32>, %b: tensor<?xf32>, %blocks: index, %size: index, %start: f32) -> f32 {
  %c8 = arith.constant 8 : index
  %sum = lacis.loop "k0" %k0 to %blocks iter(%outer = %start) -> (f32) {
    %part = lacis.loop "k1" %k1 to %c8 iter(%acc = %outer) -> (f32) {
      %scaled = arith.muli %k0, %c8 : index
      %k = arith.addi %scaled, %k1 : index
      %inside = arith.cmpi slt, %k, %size : index
      %kept = scf.if %inside -> (f32) {
        %x = lacis.read %a[%k] : tensor<?xf32> -> f32
        %y = lacis.read %b[%k] : tensor<?xf32> -> f32
        %m = arith.mulf %x, %y : f32
        %next = arith.addf %acc, %m : f32
        scf.yield %next : f32
      } else {
        scf.yield %acc : f32
      }
      lacis.yield %kept : f32
    } vectorize<8>
    lacis.yield %part : f32
  }
  return %sum : f32
}

// -----

func.func @no_operation(%start: f32) -> f32 {
  %c8 = arith.constant 8 : index
  // expected-error @below {{vectorize: the rounds of loop 'k' are not added up by one operation}}
  %sum = lacis.loop "k" %k to %c8 iter(%acc = %start) -> (f32) {
    %next = arith.negf %acc : f32
    lacis.yield %next : f32
  } vectorize<8>
  return %sum : f32
}
