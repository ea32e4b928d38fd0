// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

// Positions are walked in equal shares. A row is written where it ends, or a part of it is kept; then the parts of rows
// that several shares meet are added in their order.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, {{.*}} %[[Y:[^:]*]]: tensor<?xf32> {{{.*}}lacis.listed = true
// CHECK:         %[[SIZE:.*]] = arith.constant {lacis.share = "i_j"} 512 : index
// CHECK:         %[[ROOM:.*]] = lacis.positions %[[W]][0]
// CHECK:         %[[COUNT:.*]] = arith.ceildivui %[[ROOM]], %[[SIZE]]
// CHECK:         %[[PARTS:.*]] = lacis.workspace(%[[COUNT]], %{{.*}})
// CHECK:         lacis.loop "i_j0" %[[SHARE:.*]] to %[[COUNT]]
// CHECK:           lacis.loop "i_j1" %{{.*}} iter(%[[SUM:.*]] = %{{.*}}) -> (f32)
// CHECK:             %[[ROW:.*]], %{{.*}} = lacis.coordinate %[[W]][0] at %[[POSITION:[0-9]+]]
// CHECK:             %[[VALUE:.*]] = lacis.value %[[W]] at %[[POSITION]]
// CHECK:             %[[NEXT:.*]] = arith.addf %[[SUM]], %[[VALUE]]
// CHECK:             scf.if
// CHECK:               scf.if
// CHECK:                 lacis.write %[[NEXT]] to %[[PARTS]][%[[SHARE]], %{{.*}}]
// CHECK:               } else {
// CHECK:                 lacis.write %[[NEXT]] to %[[Y]][%[[ROW]]]
// CHECK:         } meets
// CHECK:         lacis.loop "i"<nest "i_j"> %{{.*}} to %[[COUNT]]
// CHECK:           %[[END:.*]] = lacis.seek %[[W]][0]
// CHECK:           lacis.loop "i_j0"<nest "i_j">
// CHECK:             lacis.read %[[PARTS]]
// CHECK:           lacis.write %{{.*}} to %[[Y]]
#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
func.func @rows(%w: tensor<?x?xf32, #coo> {lacis.name = "w", lacis.hypersparse = array<i1: true, false>}, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #coo>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// A sum that begins with something else has that added once.
// CHECK-LABEL: func.func @begins(
// CHECK:         lacis.loop "i"<phase "unlisted">
// CHECK:         lacis.loop "i_j0"
// CHECK:           %[[INIT:.*]] = lacis.read %{{.*}}[%[[ROW:.*]]]
// CHECK:           %[[ALL:.*]] = arith.addf %[[INIT]], %{{.*}}
// CHECK:           lacis.write %[[ALL]] to %{{.*}}[%[[ROW]]]
#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
func.func @begins(%w: tensor<?x?xf32, #coo> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.own<operand = "w", form = "share">]} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #coo>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Parts of a difference are no sum.
#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
// expected-error @+1 {{own: operand 'w' has no form 'share': its sum is not made by one operation that has a neutral element}}
func.func @difference(%w: tensor<?x?xf32, #coo> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.own<operand = "w", form = "share">]} {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #coo>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.subf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// A companion in the order of the format has no link: its positions are slots.
// CHECK-LABEL: func.func @index(
// CHECK:         lacis.walk {{.*}} to tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed<unique=false>)>>
#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
func.func @index(%w: tensor<?x?xf32, #coo> {lacis.name = "w"}, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%w : tensor<?x?xf32, #coo>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %r = arith.addf %acc, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
