// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A loop over coordinates sinks below the walk in it: its sums become a tile, which the walk adds to.
// CHECK-LABEL: func.func @columns(
// CHECK:         %[[TILE:.*]] = lacis.workspace(%{{.*}}) place<private>
// CHECK:         lacis.loop "k1"<nest "j", phase "tile"> %[[K:.*]] to
// CHECK:           scf.if
// CHECK:             lacis.write %{{.*}} to %[[TILE]][%[[K]]]
// CHECK:         lacis.level_loop "j" %{{.*}}[1] at %{{.*}} (%[[P:.*]], %[[J:.*]]) : tensor
// CHECK:           lacis.loop "k1" %[[K:.*]] to
// CHECK:             scf.if
// CHECK:               %[[BEFORE:.*]] = lacis.read %[[TILE]][%[[K]]]
// CHECK:               %[[SUM:.*]] = arith.addf %[[BEFORE]]
// CHECK:               lacis.write %[[SUM]] to %[[TILE]][%[[K]]]
// CHECK:         lacis.loop "k1"<nest "j"> %[[K:.*]] to
// CHECK:           scf.if
// CHECK:             %[[SUM:.*]] = lacis.read %[[TILE]][%[[K]]]
// CHECK:             lacis.write %[[SUM]] to %{{.*}} : f32 to tensor<?x?xf32>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @columns(%w: tensor<?x?xf32, #csr>, %x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %n: index, %m: index)
    attributes {lacis.steps = [#lacis.split<loop = "k", factor = 8>, #lacis.reorder<loops = ["k0", "i", "j", "k1"]>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    lacis.loop "k" %k to %m {
      %a = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
      %s = lacis.level_loop "j" %w[1] at %a (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
        %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
        %b = lacis.read %x[%j, %k] : tensor<?x?xf32> -> f32
        %c = arith.mulf %v, %b : f32
        %r = arith.addf %acc, %c : f32
        lacis.yield %r : f32
      }
      lacis.write %s to %y[%i, %k] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{reorder: loop 'k' has no constant trip count; split it first, the sums of its inner loop are a tile then}}
// expected-note @+1 {{asked for}}
func.func @any(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %i: index, %m: index, %zero: f32)
    attributes {lacis.steps = [#lacis.reorder<loops = ["j", "k"]>]} {
  lacis.loop "k" %k to %m {
    %s = lacis.level_loop "j" %w[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      lacis.yield %v : f32
    }
    lacis.write %s to %y[%k] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{reorder: 512 sums of loop 'k1' are more than 256, the most of a tile; split it first}}
// expected-note @+1 {{asked for}}
func.func @large(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %i: index, %m: index, %zero: f32)
    attributes {lacis.steps = [#lacis.split<loop = "k", factor = 512>, #lacis.reorder<loops = ["j", "k1"]>]} {
  lacis.loop "k" %k to %m {
    %s = lacis.level_loop "j" %w[1] at %i (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      lacis.yield %v : f32
    }
    lacis.write %s to %y[%k] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
