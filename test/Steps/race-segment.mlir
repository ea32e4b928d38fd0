// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

// A share adds to what the one before carries on unless a row begins in it; a row that ends in it is finished there. Only
// rows that cross the edge of a group of 32 shares, 128 entries, leave parts.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[Y:[^:]*]]: tensor<?xf32> {lacis.name = "y"}
// CHECK:         %[[GROUPS:.*]] = arith.ceildivui %{{.*}}, %c32
// CHECK:         %[[SIZE:.*]] = arith.constant 128 : index
// CHECK:         %[[PARTS:.*]] = lacis.workspace(%[[GROUPS]], %c2)
// CHECK:         lacis.loop "i_j00" %[[GROUP:.*]] to
// CHECK:           lacis.loop "i_j01" %[[UNIT:.*]] to %c32{{.*}} iter(%[[CARRIED:.*]] = %{{.*}}) -> (f32) {
// CHECK:             %[[FIRST:.*]] = lacis.owner
// CHECK:             %[[OWN:.*]]:2 = lacis.loop "i"
// CHECK:               scf.if
// CHECK-NEXT:            lacis.write %{{.*}} to %[[Y]]
// CHECK:             %[[ON:.*]] = arith.addf %[[CARRIED]], %[[OWN]]#1
// CHECK:             %[[NEXT:.*]] = arith.select %{{.*}}, %[[ON]], %[[OWN]]#1
// CHECK:             %[[TOTAL:.*]] = arith.addf %[[CARRIED]], %[[OWN]]#0
// CHECK:             scf.if
// CHECK:               lacis.write %[[TOTAL]] to %[[Y]][%[[FIRST]]]
// CHECK:               lacis.write %[[TOTAL]] to %[[PARTS]][%[[GROUP]],
// CHECK:             lacis.write %[[NEXT]] to %[[PARTS]][%[[GROUP]],
// CHECK:             lacis.yield %[[NEXT]]
// CHECK:           } bind<lane> race<"segment"> scan
// CHECK:         } bind<block.x> meets race<"order">
// CHECK:         lacis.loop "i0"<nest "i_j">
// CHECK:           arith.divui %{{.*}}, %[[SIZE]]
// CHECK:           arith.divui %{{.*}}, %[[SIZE]]
// CHECK:           lacis.read %[[PARTS]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>, #lacis.split<loop = "i_j0", factor = 32>,
                               #lacis.race<loop = "i_j01", strategy = "segment">, #lacis.bind<loop = "i_j01", unit = "lane">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{race: 'segment' is for a group of shares of known number; loop 'i_j0' is none; split it and take the inner loop; 'order', 'private' would do}}
// expected-note @+1 {{asked for}}
func.func @no_group(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index)
    attributes {lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>, #lacis.race<loop = "i_j0", strategy = "segment">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
