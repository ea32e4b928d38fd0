// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops | FileCheck %s

#csr = #lacis.format<(h, i, j) -> (h : batch, i : dense, j : compressed)>

// What a second statement reads has a nest and a workspace: (copy, slot) on the pattern, its axes where it is dense.
// CHECK-LABEL: func @shares(
// CHECK:         %[[P:.*]] = lacis.workspace(%{{.*}}, %{{.*}}) kept<"p"> : tensor<?x?xf32
// CHECK:         lacis.loop "h"<statement "p">
// CHECK:             math.exp
// CHECK:             lacis.write %{{.*}} to %[[P]][%{{.*}}, %{{.*}}]
// CHECK:         %[[L:.*]] = lacis.workspace
// CHECK:         lacis.loop "h"<statement "l">
// CHECK:           lacis.level_loop "j"<statement "l">
// CHECK:             lacis.read %[[P]][
// CHECK:         lacis.loop "h"
// CHECK:           lacis.loop "i"
// CHECK:             lacis.level_loop "j"
// CHECK:               lacis.read %[[P]][
// CHECK:               lacis.read %[[L]][
// CHECK:             lacis.write
func.func @shares(%q: tensor<?x?xf32>, %p: !lacis.pattern<?x?x?, #csr>, %none: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %z = lacis.zeros %p : !lacis.pattern<?x?x?, #csr> to tensor<?x?x?xf32, #csr>
  %e = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, j)>, affine_map<(h, i, j) -> (h, i, j)>],
      iterator_types = ["parallel", "parallel", "parallel"], lacis.loops = ["h", "i", "j"], lacis.name = "p"}
      ins(%q : tensor<?x?xf32>) outs(%z : tensor<?x?x?xf32, #csr>) {
  ^bb0(%a: f32, %old: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<?x?x?xf32, #csr>
  %l = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "j"], lacis.name = "l"}
      ins(%e : tensor<?x?x?xf32, #csr>) outs(%none : tensor<?x?xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %r = arith.addf %sum, %a : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, i, j) -> (h, i, j)>, affine_map<(h, i, j) -> (h, i)>,
                                        affine_map<(h, i, j) -> (h, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["h", "i", "j"]}
      ins(%e, %l : tensor<?x?x?xf32, #csr>, tensor<?x?xf32>) outs(%none : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %d = arith.divf %a, %b : f32
    %r = arith.addf %sum, %d : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#map = affine_map<(i, j) -> (i, j)>

func.func @two(%p: !lacis.pattern<?x?, #csr>, %r: !lacis.pattern<?x?, #csr>, %x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %w = lacis.zeros %r : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%x : tensor<?x?xf32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<?x?xf32, #csr>
  // expected-error@+1 {{operand 0 is made on another pattern; the statements of a chain share one}}
  %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%a : tensor<?x?xf32, #csr>) outs(%w : tensor<?x?xf32, #csr>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<?x?xf32, #csr>
  return %y : tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#map = affine_map<(i, j) -> (i, j)>

func.func @beside(%p: !lacis.pattern<?x?, #csr>, %v: tensor<?x?xf32, #csr>, %x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%x : tensor<?x?xf32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<?x?xf32, #csr>
  // expected-error@+1 {{operand 1 is walked beside what a statement made; a chain walks one pattern}}
  %b = linalg.generic {indexing_maps = [#map, #map, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"]}
      ins(%a, %v : tensor<?x?xf32, #csr>, tensor<?x?xf32, #csr>) outs(%y : tensor<?xf32>) {
  ^bb0(%in: f32, %val: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<?xf32>
  return %b : tensor<?xf32>
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#map = affine_map<(i, j) -> (i, j)>
#none = affine_map<(i, j) -> ()>

func.func @whole(%p: !lacis.pattern<?x?, #csr>, %x: tensor<?x?xf32>, %m: tensor<f32>) -> tensor<?x?xf32, #csr> {
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to tensor<?x?xf32, #csr>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%x : tensor<?x?xf32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%in: f32, %old: f32):
    linalg.yield %in : f32
  } -> tensor<?x?xf32, #csr>
  // expected-error@+1 {{a statement of a chain whose result has no axis has no unit to run on}}
  %b = linalg.generic {indexing_maps = [#map, #none], iterator_types = ["reduction", "reduction"], lacis.loops = ["i", "j"]}
      ins(%a : tensor<?x?xf32, #csr>) outs(%m : tensor<f32>) {
  ^bb0(%in: f32, %old: f32):
    %r = arith.maximumf %in, %old : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %y = linalg.generic {indexing_maps = [#map, #none, #map], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"]}
      ins(%a, %b : tensor<?x?xf32, #csr>, tensor<f32>) outs(%z : tensor<?x?xf32, #csr>) {
  ^bb0(%in: f32, %top: f32, %old: f32):
    %r = arith.subf %in, %top : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #csr>
  return %y : tensor<?x?xf32, #csr>
}
