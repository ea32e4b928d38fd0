// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A strip of a list writes zeros up to its last row, and then its rows; the last one, which an empty list has, to the end.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    lacis.listed = false
// CHECK-DAG:     %[[ROOM:.*]] = lacis.positions
// CHECK-DAG:     %[[MORE:.*]] = arith.addi %[[ROOM]]
// CHECK-DAG:     %[[STRIPS:.*]] = arith.ceildivui %[[MORE]]
// CHECK:         lacis.loop "i0" %{{.*}} to %[[STRIPS]]
// CHECK:           %[[LO:.*]], %[[HI:.*]] = lacis.bounds
// CHECK:           %[[ANY:.*]] = arith.cmpi slt, %[[LO]], %[[HI]]
// CHECK:           scf.if %[[ANY]]
// CHECK:             %[[BEFORE:.*]], %{{.*}} = lacis.coordinate
// CHECK:             %[[OWN:.*]], %{{.*}} = lacis.coordinate
// CHECK:             lacis.loop "i"<phase "unlisted">
// CHECK:           } else {
// CHECK:             lacis.loop "i"<phase "unlisted">
// CHECK:           lacis.loop "i1"
// CHECK:             lacis.level_loop "j"
#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #dcsr> {lacis.axes = ["i", "j"]},
                %y: tensor<?xf32> {lacis.axes = ["i"], lacis.listed = true, lacis.name = "y"})
    attributes {lacis.steps = [#lacis.split<loop = "i", factor = 16>, #lacis.compute_at<operand = "y", loop = "i0">]} {
  %zero = arith.constant 0.0 : f32
  %n = lacis.positions %w[0] : tensor<?x?xf32, #dcsr>
  lacis.loop "i" %i to %n {
    %c0 = arith.constant 0 : index
    %lo, %hi = lacis.bounds %w[0] at %c0 : tensor<?x?xf32, #dcsr>
    %p = arith.addi %lo, %i : index
    %in = arith.cmpi slt, %p, %hi : index
    scf.if %in {
      %row, %valid = lacis.coordinate %w[0] at %p from %lo : tensor<?x?xf32, #dcsr> -> index
      %s = lacis.level_loop "j" %w[1] at %p (%q, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #dcsr> {
        %v = lacis.value %w at %q : tensor<?x?xf32, #dcsr> -> f32
        %r = arith.addf %acc, %v : f32
        lacis.yield %r : f32
      }
      lacis.write %s to %y[%row] : f32 to tensor<?xf32>
    }
    lacis.yield
  }
  return
}

// -----

#dcsr = #lacis.format<(i, j) -> (i : compressed, j : compressed)>
// expected-error @+2 {{compute_at: loop 'i' does not go over strips of a list; split the loop over its rows}}
// expected-note @+1 {{asked for}}
func.func @whole(%w: tensor<?x?xf32, #dcsr>, %s: f32, %y: tensor<?xf32> {lacis.listed = true, lacis.name = "y"})
    attributes {lacis.steps = [#lacis.compute_at<operand = "y", loop = "i">]} {
  %n = lacis.positions %w[0] : tensor<?x?xf32, #dcsr>
  lacis.loop "i" %i to %n {
    %row, %valid = lacis.coordinate %w[0] at %i from %i : tensor<?x?xf32, #dcsr> -> index
    lacis.write %s to %y[%row] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
// expected-error @+2 {{compute_at: loop 'i' goes over a level that does not list whole rows in ascending order, without padding}}
// expected-note @+1 {{asked for}}
func.func @repeats(%w: tensor<?x?xf32, #coo>, %s: f32, %y: tensor<?xf32> {lacis.listed = true, lacis.name = "y"})
    attributes {lacis.steps = [#lacis.compute_at<operand = "y", loop = "i">]} {
  %n = lacis.positions %w[0] : tensor<?x?xf32, #coo>
  lacis.loop "i" %i to %n {
    %row, %valid = lacis.coordinate %w[0] at %i from %i : tensor<?x?xf32, #coo> -> index
    lacis.write %s to %y[%row] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#csc = #lacis.format<(i, j) -> (j : dense, i : compressed)>
// expected-error @+2 {{compute_at: loop 'j' does not write each row that a level lists, alone, to an output that begins as zeros}}
// expected-note @+1 {{asked for}}
func.func @columns(%w: tensor<?x?xf32, #csc>, %s: f32, %m: index, %y: tensor<?xf32> {lacis.listed = true, lacis.name = "y"})
    attributes {lacis.steps = [#lacis.compute_at<operand = "y", loop = "j">]} {
  lacis.loop "j" %j to %m {
    lacis.level_loop "i" %w[1] at %j (%p, %i) : tensor<?x?xf32, #csc> {
      lacis.write %s to %y[%i] : f32 to tensor<?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}
