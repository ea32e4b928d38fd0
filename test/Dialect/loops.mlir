// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

// The operations of the loops stage print as they are written.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#csc = #lacis.format<(i, j) -> (j : dense, i : compressed)>
#rows = #lacis.format<(j, i) -> (i : dense, j : compressed<unique=false>, link)>
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#sum = #lacis.sum<ell = #ell when fits, rest = #csr>
#panels = #lacis.format<(b) -> (b floordiv 4 : dense, b mod 4 : dense)>

// CHECK-LABEL: func.func @tensors(
func.func @tensors(%s: tensor<?x?xf32, #sum>, %w: tensor<?x?xf32, #csc>, %n: index) {
  // CHECK: lacis.part "rest" of %{{.*}} : tensor<?x?xf32, #{{.*}}> to tensor<?x?xf32, #{{.*}}>
  %rest = lacis.part "rest" of %s : tensor<?x?xf32, #sum> to tensor<?x?xf32, #csr>
  // CHECK: lacis.walk %{{.*}} : tensor<?x?xf32, #{{.*}}> to tensor<?x?xf32, #{{.*}}>
  %walked = lacis.walk %w : tensor<?x?xf32, #csc> to tensor<?x?xf32, #rows>
  // CHECK: lacis.workspace(%{{.*}}) : tensor<?xf32, #{{.*}}>
  %copy = lacis.workspace(%n) : tensor<?xf32, #panels>
  // CHECK: lacis.zeros %{{.*}} : tensor<?x?xf32, #{{.*}}> to tensor<?x?xf32, #{{.*}}>
  %zeros = lacis.zeros %w : tensor<?x?xf32, #csc> to tensor<?x?xf32, #csc>
  return
}

// CHECK-LABEL: func.func @loops(
func.func @loops(%w: tensor<?x?xf32, #csr>, %x: tensor<?xf32>, %y: tensor<?xf32>, %n: index, %zero: f32) {
  %c0 = arith.constant 0 : index
  // CHECK: lacis.loop "i" %[[I:.*]] to %{{.*}} {
  lacis.loop "i" %i to %n {
    // CHECK: %[[ROW:.*]] = lacis.locate %{{.*}}[0] at %{{.*}}(%[[I]]) : tensor
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    // CHECK: lacis.level_loop "j" %{{.*}}[1] at %[[ROW]] (%[[P:.*]], %[[J:.*]]) iter(%[[ACC:.*]] = %{{.*}}) -> (f32) : tensor
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      // CHECK: lacis.value %{{.*}} at %[[P]] : tensor{{.*}} -> f32
      %a = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      // CHECK: lacis.entry %{{.*}} at %[[P]] : tensor{{.*}} -> i1
      %e = lacis.entry %w at %p : tensor<?x?xf32, #csr> -> i1
      // CHECK: lacis.read %{{.*}}[%[[J]]] : tensor<?xf32> -> f32
      %b = lacis.read %x[%j] : tensor<?xf32> -> f32
      %m = arith.mulf %a, %b : f32
      %r = arith.addf %acc, %m : f32
      // CHECK: lacis.yield %{{.*}} : f32
      lacis.yield %r : f32
    // CHECK: } reduce<add> unroll<4>
    } unroll<4>
    // CHECK: lacis.write %{{.*}} to %{{.*}}[%[[I]]] : f32 to tensor<?xf32>
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  // CHECK: } bind<parallel>
  } bind<parallel>
  return
}

// CHECK-LABEL: func.func @positions(
func.func @positions(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %p: index, %n: index) {
  // CHECK: lacis.positions %{{.*}}[1] : tensor
  %room = lacis.positions %w[1] : tensor<?x?xf32, #csr>
  // CHECK: lacis.owner %{{.*}}[1] of %{{.*}} in %{{.*}} : tensor
  %row = lacis.owner %w[1] of %p in %n : tensor<?x?xf32, #csr>
  // CHECK: %[[LO:.*]], %{{.*}} = lacis.bounds %{{.*}}[1] at %{{.*}} : tensor
  %lo, %hi = lacis.bounds %w[1] at %row : tensor<?x?xf32, #csr>
  // CHECK: lacis.seek %{{.*}}[1] from %[[LO]] to %{{.*}} of %{{.*}} : tensor
  %from = lacis.seek %w[1] from %lo to %hi of %n : tensor<?x?xf32, #csr>
  // CHECK: lacis.coordinate %{{.*}}[1] at %{{.*}} from %[[LO]] : tensor{{.*}} -> index
  %j, %valid = lacis.coordinate %w[1] at %p from %lo : tensor<?x?xf32, #csr> -> index
  // CHECK: %[[V:.*]] = lacis.read %{{.*}}[%{{.*}}] along 0 count %{{.*}} : tensor<?xf32> -> vector<8xf32>
  %v = lacis.read %y[%j] along 0 count %n : tensor<?xf32> -> vector<8xf32>
  // CHECK: lacis.set %[[V]] to %{{.*}} at %{{.*}} count %{{.*}} : vector<8xf32> to tensor
  lacis.set %v to %w at %p count %n : vector<8xf32> to tensor<?x?xf32, #csr>
  // CHECK: lacis.lanes %{{.*}} : vector<8xi1>
  %first = lacis.lanes %n : vector<8xi1>
  return
}
