// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-lower-patterns -lacis-choose-walks=rows=true -lacis-linalg-to-loops | FileCheck %s

// Where rows and columns are narrow, a product sampled on a pattern goes by its rows: nothing lists the rows of entries.
// CHECK-LABEL: func.func @narrow(
// CHECK-SAME:    %[[P:[^:]*]]: tensor<?x?xi1, {{.*}} %[[A:[^:]*]]: tensor<?x?xf32>{{.*}} %[[B:[^:]*]]: tensor<?x?xf32>{{.*}} %[[Y:[^:]*]]: tensor<{{.*}}lacis.sample = 0
// CHECK-NOT:     lacis.walk
// CHECK:         lacis.loop "i" %[[I:.*]] to
// CHECK:           %[[ROW:.*]] = lacis.locate %[[P]][0]
// CHECK:           lacis.level_loop "j" %[[P]][1] {{.*}}%[[ROW]]
// CHECK:             lacis.loop "k"
// CHECK:             lacis.set %{{.*}} to %[[Y]] at
#narrow = #lacis.format<(i, j) -> (i : dense<crd=i16>, j : compressed<crd=i16>)>
#maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
func.func @narrow(%p: !lacis.pattern<?x?, #narrow>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32, #narrow> {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #narrow> to tensor<?x?xf32, #narrow>
  %sum = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["i", "j", "k"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%zero : tensor<?x?xf32, #narrow>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #narrow>
  return %sum : tensor<?x?xf32, #narrow>
}

// -----

// Where the format says nothing of rows, they are listed.
// CHECK-LABEL: func.func @wide(
// CHECK:         lacis.walk {{.*}} (i : compressed<unique=false>, j : singleton<crd=i16>)>>
// CHECK:         lacis.loop "i_j"
#wide = #lacis.format<(i, j) -> (i : dense, j : compressed<crd=i16>)>
#maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
func.func @wide(%p: !lacis.pattern<?x?, #wide>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32, #wide> {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #wide> to tensor<?x?xf32, #wide>
  %sum = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["i", "j", "k"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%zero : tensor<?x?xf32, #wide>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #wide>
  return %sum : tensor<?x?xf32, #wide>
}

// -----

// A step asks for the rows of any width.
// CHECK-LABEL: func.func @asked(
// CHECK-NOT:     lacis.walk %
// CHECK:         lacis.loop "i"
// CHECK:           lacis.level_loop "j"
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
func.func @asked(%p: !lacis.pattern<?x?, #csr> {lacis.name = "p"}, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32, #csr>
    attributes {lacis.steps = [#lacis.walk<operand = "p", axes = ["i"]>]} {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %sum = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["i", "j", "k"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%zero : tensor<?x?xf32, #csr>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #csr>
  return %sum : tensor<?x?xf32, #csr>
}

// -----

// A step that names the loop over all entries has it, of narrow rows too.
// CHECK-LABEL: func.func @named(
// CHECK:         lacis.loop "i_j"
#narrow = #lacis.format<(i, j) -> (i : dense<crd=i16>, j : compressed<crd=i16>)>
#maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>]
func.func @named(%p: !lacis.pattern<?x?, #narrow>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>) -> tensor<?x?xf32, #narrow>
    attributes {lacis.steps = [#lacis.split<loop = "i_j", factor = 8>, #lacis.jam<loop = "i_j1">]} {
  %zero = lacis.zeros %p : !lacis.pattern<?x?, #narrow> to tensor<?x?xf32, #narrow>
  %sum = linalg.generic {indexing_maps = #maps, iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["i", "j", "k"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%zero : tensor<?x?xf32, #narrow>) {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %m = arith.mulf %x, %y : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #narrow>
  return %sum : tensor<?x?xf32, #narrow>
}
