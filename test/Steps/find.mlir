// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// Coordinates in the place of positions; where one is not found the sum passes on.
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[SIZE:.*]] = tensor.dim %{{.*}}, %c1
// CHECK:         lacis.loop "i"
// CHECK:           lacis.loop "j" %[[J:.*]] to %[[SIZE]] iter(%[[SUM:.*]] = %{{.*}}) -> (f32)
// CHECK:             %[[P:.*]], %[[THERE:.*]] = lacis.find %{{.*}}[1] at %{{.*}}(%[[J]])
// CHECK:             scf.if %[[THERE]] -> (f32)
// CHECK:               lacis.value %{{.*}} at %[[P]]
// CHECK:               lacis.read %{{.*}}[%[[J]]]
// CHECK:             else
// CHECK:               scf.yield %[[SUM]]
#bits = #lacis.format<(i, j) -> (i : dense, j : bitmap)>
func.func @rows(%w: tensor<?x?xf32, #bits>, %x: tensor<?xf32>, %y: tensor<?xf32>)
    attributes {lacis.steps = [#lacis.find<loop = "j">]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %w, %c0 : tensor<?x?xf32, #bits>
  lacis.loop "i" %i to %n {
    %r = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #bits>
    %s = lacis.level_loop "j" %w[1] at %r (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #bits> {
      %a = lacis.value %w at %p : tensor<?x?xf32, #bits> -> f32
      %b = lacis.read %x[%j] : tensor<?xf32> -> f32
      %m = arith.mulf %a, %b : f32
      %t = arith.addf %acc, %m : f32
      lacis.yield %t : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{find: 'i' names no loop over the positions of one level}}
// expected-note @+1 {{asked for}}
func.func @coordinates(%n: index) attributes {lacis.steps = [#lacis.find<loop = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{find: loop 'j' is of a level of kind 'compressed', which has no way to find a coordinate but a search}}
// expected-note @+1 {{asked for}}
func.func @search(%w: tensor<?x?xf32, #csr>, %n: index) attributes {lacis.steps = [#lacis.find<loop = "j">]} {
  lacis.loop "i" %i to %n {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

#tiles = #lacis.format<(i, j) -> (i floordiv 4 : dense, j floordiv 4 : dense, (i mod 4, j mod 4) : bitmap)>
// expected-error @+2 {{find: loop 'i1_j1' is of a level of several axes, and runs over the coordinates of one}}
// expected-note @+1 {{asked for}}
func.func @several(%w: tensor<?x?xf32, #tiles>, %n: index) attributes {lacis.steps = [#lacis.find<loop = "i1_j1">]} {
  lacis.loop "i" %i to %n {
    lacis.level_loop "i1_j1" %w[2] at %i (%p, %a, %c) : tensor<?x?xf32, #tiles> {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

#bits = #lacis.format<(i, j) -> (i : dense, j : bitmap)>
// expected-error @+2 {{find: loop 'j' is marked already}}
// expected-note @+1 {{asked for}}
func.func @marked(%w: tensor<?x?xf32, #bits>, %n: index)
    attributes {lacis.steps = [#lacis.unroll<loop = "j", factor = 2>, #lacis.find<loop = "j">]} {
  lacis.loop "i" %i to %n {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #bits> {
      lacis.yield
    }
    lacis.yield
  }
  return
}
