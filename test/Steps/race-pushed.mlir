// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-apply-steps | FileCheck %s

// Units that add to the output where they find its elements add to copies of their own, which begin as what adds nothing.
// CHECK-LABEL: func.func @copies(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, {{.*}} %[[Y:[^:]*]]: tensor<?xf32>
// CHECK:         %[[COPIES:.*]] = lacis.workspace(%{{.*}}, %{{.*}}) : tensor<?x?xf32
// CHECK:         lacis.loop "copy"<nest "j"> %[[U:[^ ]*]] to
// CHECK:           lacis.loop "i"<nest "j", phase "copy"> %[[I:[^ ]*]] to
// CHECK:             lacis.write %{{.*}} to %[[COPIES]][%[[U]], %[[I]]]
// CHECK:         } begins
// CHECK:         lacis.loop "j" %[[J:[^ ]*]] to
// CHECK:           lacis.level_loop "i" %[[W]][1] at %{{.*}} (%{{.*}}, %[[ROW:.*]]) :
// CHECK:             %[[BEFORE:.*]] = lacis.read %[[COPIES]][%[[J]], %[[ROW]]]
// CHECK:             %[[SUM:.*]] = arith.addf %[[BEFORE]]
// CHECK:             lacis.write %[[SUM]] to %[[COPIES]][%[[J]], %[[ROW]]]
// CHECK:         } bind<parallel> meets race<"private">
// CHECK:         lacis.loop "i"<nest "j"> %[[I2:[^ ]*]] to
// CHECK:           %[[FIRST:.*]] = lacis.read %[[Y]][%[[I2]]]
// CHECK:           %[[ALL:.*]] = lacis.loop "j"<nest "j"> %[[NEXT:.*]] to %{{.*}} iter(%[[ACC:.*]] = %[[FIRST]]) -> (f32) {
// CHECK:             %[[COPY:.*]] = lacis.read %[[COPIES]][%[[NEXT]], %[[I2]]]
// CHECK:             arith.addf %[[ACC]], %[[COPY]]
// CHECK:           lacis.write %[[ALL]] to %[[Y]][%[[I2]]]
#csc = #lacis.format<(i, j) -> (j : dense, i : compressed)>
func.func @copies(%w: tensor<?x?xf32, #csc> {lacis.axes = ["i", "j"], lacis.name = "w"},
                  %y: tensor<?xf32> {lacis.axes = ["i"], lacis.name = "y"})
    attributes {lacis.steps = [#lacis.race<loop = "j", strategy = "private">, #lacis.parallel<loop = "j">]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %w, %c1 : tensor<?x?xf32, #csc>
  lacis.loop "j" %j to %n {
    %column = lacis.locate %w[0] at %c0(%j) : tensor<?x?xf32, #csc>
    lacis.level_loop "i" %w[1] at %column (%p, %i) : tensor<?x?xf32, #csc> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csc> -> f32
      %before = lacis.read %y[%i] : tensor<?xf32> -> f32
      %sum = arith.addf %before, %v : f32
      lacis.write %sum to %y[%i] : f32 to tensor<?xf32>
      lacis.yield
    }
    lacis.yield
  } meets
  return
}

// -----

// Or they add atomically, from what adds nothing.
// CHECK-LABEL: func.func @atomic(
// CHECK-SAME:    %{{[^:]*}}: tensor<?x?xf32, {{.*}} %[[Y:[^:]*]]: tensor<?xf32>
// CHECK:         lacis.loop "j"
// CHECK:           %[[V:.*]] = lacis.value
// CHECK-NOT:       lacis.read
// CHECK:           %[[SUM:.*]] = arith.addf %{{.*}}, %[[V]]
// CHECK:           lacis.write %[[SUM]] to %[[Y]][%{{.*}}] atomic<fadd>
// CHECK:         } bind<parallel> meets race<"atomic">
#csc = #lacis.format<(i, j) -> (j : dense, i : compressed)>
func.func @atomic(%w: tensor<?x?xf32, #csc> {lacis.axes = ["i", "j"], lacis.name = "w"},
                  %y: tensor<?xf32> {lacis.axes = ["i"], lacis.name = "y"})
    attributes {lacis.nondeterministic,
                lacis.steps = [#lacis.race<loop = "j", strategy = "atomic">, #lacis.parallel<loop = "j">]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %w, %c1 : tensor<?x?xf32, #csc>
  lacis.loop "j" %j to %n {
    %column = lacis.locate %w[0] at %c0(%j) : tensor<?x?xf32, #csc>
    lacis.level_loop "i" %w[1] at %column (%p, %i) : tensor<?x?xf32, #csc> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csc> -> f32
      %before = lacis.read %y[%i] : tensor<?xf32> -> f32
      %sum = arith.addf %before, %v : f32
      lacis.write %sum to %y[%i] : f32 to tensor<?xf32>
      lacis.yield
    }
    lacis.yield
  } meets
  return
}
