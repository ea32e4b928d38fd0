// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops -lacis-apply-steps | FileCheck %s

// Columns past the end of the axis, in a block that goes beyond it, add nothing to the maximum and to the sum: every
// column of the tile is written, with the least score there.
// CHECK-LABEL: func.func @tails(
// CHECK:         %[[LEAST:.*]] = arith.constant 0xFF800000 : f32
// CHECK:         lacis.level_loop "j0"
// CHECK:           lacis.loop "j1"<statement "s">
// CHECK:             arith.cmpi slt
// CHECK:             %[[SCORE:.*]] = scf.if %{{.*}} -> (f32) {
// CHECK:               lacis.read %{{.*}} : tensor<?x?xf32> -> f32
// CHECK:             } else {
// CHECK-NEXT:          scf.yield %{{.*}} : f32
// CHECK-NEXT:        }
// CHECK-NEXT:        lacis.write %[[SCORE]] to %[[TILE:.*]][
// CHECK:           lacis.loop "j1"<statement "m">
// CHECK:             lacis.read %[[TILE]][
#blocks = #lacis.format<(i, j) -> (i floordiv 4 : dense, j floordiv 4 : compressed, i mod 4 : dense, j mod 4 : dense)>
func.func @tails(%p: !lacis.pattern<?x?, #blocks> {lacis.name = "p"}, %t: tensor<?x?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.roll<loop = "j0">]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x?xf32>
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %z = lacis.zeros %p : !lacis.pattern<?x?, #blocks> to tensor<?x?xf32, #blocks>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %lowest = linalg.fill ins(%least : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"], lacis.name = "s"}
      ins(%t : tensor<?x?xf32>) outs(%z : tensor<?x?xf32, #blocks>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32, #blocks>
  %m = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"], lacis.name = "m"}
      ins(%s : tensor<?x?xf32, #blocks>) outs(%lowest : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %e = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"], lacis.name = "e"}
      ins(%s, %m : tensor<?x?xf32, #blocks>, tensor<?xf32>) outs(%z : tensor<?x?xf32, #blocks>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32, #blocks>
  %l = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"], lacis.name = "l"}
      ins(%e : tensor<?x?xf32, #blocks>) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"], lacis.loops = ["i"], lacis.name = "y"}
      ins(%m, %l : tensor<?xf32>, tensor<?xf32>) outs(%empty : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %g = math.log %b : f32
    %r = arith.addf %a, %g : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
