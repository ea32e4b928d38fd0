// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A loop over coordinates leaves the walk that it is in, and the other way; the sum is the same.
// CHECK-LABEL: func.func @hoist(
// CHECK:         %[[ROW:.*]] = lacis.locate
// CHECK:         lacis.loop "k" %[[K:.*]] to %{{.*}} iter(%[[ACC:.*]] = %{{.*}})
// CHECK:           lacis.level_loop "j" %{{.*}}[1] at %[[ROW]] (%[[P:.*]], %[[J:.*]]) iter(%[[SUM:.*]] = %[[ACC]])
// CHECK:             lacis.value %{{.*}} at %[[P]]
// CHECK:             lacis.read %{{.*}}[%[[J]], %[[K]]]
// CHECK:             arith.addf %[[SUM]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @hoist(%w: tensor<?x?xf32, #csr>, %x: tensor<?x?xf32>, %y: tensor<?xf32>, %n: index, %m: index)
    attributes {lacis.steps = [#lacis.reorder<loops = ["k", "j"]>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %a = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %a (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %t = lacis.loop "k" %k to %m iter(%own = %acc) -> (f32) {
        %b = lacis.read %x[%j, %k] : tensor<?x?xf32> -> f32
        %c = arith.mulf %v, %b : f32
        %r = arith.addf %own, %c : f32
        lacis.yield %r : f32
      }
      lacis.yield %t : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{reorder: loop 'k' is marked already, and one of the two walks positions}}
// expected-note @+1 {{asked for}}
func.func @marked(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index, %m: index)
    attributes {lacis.steps = [#lacis.unroll<loop = "k", factor = 2>, #lacis.reorder<loops = ["k", "j"]>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %a = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %a (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %t = lacis.loop "k" %k to %m iter(%own = %acc) -> (f32) {
        %r = arith.addf %own, %v : f32
        lacis.yield %r : f32
      }
      lacis.yield %t : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{reorder: what loop 'k' runs over depends on loop 'j'; walk says by which axes an operand is walked}}
// expected-note @+1 {{asked for}}
func.func @triangle(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %i: index, %zero: f32)
    attributes {lacis.steps = [#lacis.reorder<loops = ["k", "j"]>]} {
  lacis.loop "i" %n to %i {
    %s = lacis.level_loop "j" %w[1] at %n (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %t = lacis.loop "k" %k to %j iter(%own = %acc) -> (f32) {
        %r = arith.addf %own, %zero : f32
        lacis.yield %r : f32
      }
      lacis.yield %t : f32
    }
    lacis.write %s to %y[%n] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
