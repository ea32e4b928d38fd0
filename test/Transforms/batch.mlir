// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// The levels below a batch begin at position 0 for each of its coordinates, which name a copy of the values.
// CHECK-LABEL: func.func @heads(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?x?xf32
// CHECK:         lacis.loop "h" %[[H:.*]] to
// CHECK:           lacis.loop "i" %[[I:.*]] to
// CHECK:             %[[ROOT:.*]] = arith.constant 0 : index
// CHECK:             %[[ROW:.*]] = lacis.locate %[[W]][1] at %[[ROOT]](%[[I]])
// CHECK:             lacis.level_loop "j" %[[W]][2] at %[[ROW]] (%[[POS:.*]], %{{.*}}) iter
// CHECK:               %[[COPY:.*]] = lacis.locate %[[W]][0] at %{{.*}}(%[[H]])
// CHECK:               lacis.value %[[W]] at %[[POS]] batch %[[COPY]]
#heads = #lacis.format<(h, i, j) -> (h : batch, i : dense, j : compressed)>
#maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, j)>, affine_map<(h, i, j) -> (h, i)>]
func.func @heads(%w: tensor<?x?x?xf32, #heads>, %x: tensor<?x?xf32>, %init: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "j"]}
      ins(%w, %x : tensor<?x?x?xf32, #heads>, tensor<?x?xf32>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Sampled values go to the copy of their coordinates, at the position of the pattern.
// CHECK-LABEL: func.func @sampled(
// CHECK:         %[[ROOM:.*]] = lacis.positions %{{.*}}[1]
// CHECK:         lacis.loop "h" %[[H:.*]] to
// CHECK:           lacis.loop "i_j" %{{.*}} to %[[ROOM]]
// CHECK:             %[[POS:.*]] = arith.addi %{{.*}}, %{{.*}}
// CHECK:             %[[COPY:.*]] = lacis.locate %{{.*}}[0] at %{{.*}}(%[[H]])
// CHECK:             lacis.set %{{.*}} to %{{.*}} at %[[POS]] batch %[[COPY]]
#coo = #lacis.format<(h, i, j) -> (h : batch, i : compressed<unique=false>, j : singleton)>
#maps = [affine_map<(h, i, j) -> (h, i)>, affine_map<(h, i, j) -> (h, j)>, affine_map<(h, i, j) -> (h, i, j)>]
func.func @sampled(%p: !lacis.pattern<?x?x?, #coo>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?x?xf32, #coo> {
  %zero = lacis.zeros %p : !lacis.pattern<?x?x?, #coo> to tensor<?x?x?xf32, #coo>
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "i", "j"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%zero : tensor<?x?x?xf32, #coo>) {
  ^bb0(%u: f32, %v: f32, %old: f32):
    %m = arith.mulf %u, %v : f32
    linalg.yield %m : f32
  } -> tensor<?x?x?xf32, #coo>
  return %y : tensor<?x?x?xf32, #coo>
}

// -----

// A list of rows is walked for each copy, and the unlisted rows of each are written before.
// CHECK-LABEL: func.func @list(
// CHECK:         lacis.loop "h"<phase "unlisted">
// CHECK:           lacis.loop "i"<phase "unlisted">
// CHECK:         lacis.positions %[[W:.*]][1]
// CHECK:         lacis.loop "h" %[[H:.*]] to
// CHECK:           lacis.loop "i" %{{.*}} to
// CHECK:             lacis.coordinate %[[W]][1] at %[[P:.*]] from
// CHECK:             lacis.level_loop "j" %[[W]][2] at %[[P]]
// CHECK:               lacis.value %[[W]] at %{{.*}} batch
#rows = #lacis.format<(h, i, j) -> (h : batch, i : compressed, j : compressed)>
#maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i)>]
func.func @list(%w: tensor<?x?x?xf32, #rows> {lacis.name = "w"}, %init: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "j"]}
      ins(%w : tensor<?x?x?xf32, #rows>) outs(%init : tensor<?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
