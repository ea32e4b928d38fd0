// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-patterns -lacis-choose-walks -lacis-linalg-to-loops -lacis-apply-steps | FileCheck %s

// What is linear in the exponentials, as what is left of them, stands between these and a sum.
// CHECK-LABEL: func.func @dropped(
// CHECK:           lacis.level_loop "j"
// CHECK:             math.exp
// CHECK:             %[[SHARE:.*]] = math.exp
// CHECK:             lacis.write %[[SHARE]] to %[[SHARES:.*]][
// CHECK:             %[[P:.*]] = lacis.read %[[SHARES]]
// CHECK:             %[[LEFT:.*]] = arith.select %{{.*}}, %[[P]]
// CHECK:             lacis.write %[[LEFT]] to %[[DROPPED:.*]][
// CHECK:             %[[SUM:.*]] = arith.mulf
// CHECK:             %[[MORE:.*]] = lacis.read %[[DROPPED]]
// CHECK:             arith.addf %[[SUM]], %[[MORE]]
// CHECK:           } rolled
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#at = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
!packed = tensor<?x?xf32, #csr>
func.func @dropped(%p: !lacis.pattern<?x?, #csr> {lacis.name = "p"}, %t: tensor<?x?xf32>) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.roll<loop = "j">]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x?xf32>
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %z = lacis.zeros %p : !lacis.pattern<?x?, #csr> to !packed
  %empty = tensor.empty(%n) : tensor<?xf32>
  %lowest = linalg.fill ins(%least : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#at, #at], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"],
      lacis.name = "s"} ins(%t : tensor<?x?xf32>) outs(%z : !packed) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> !packed
  %m = linalg.generic {indexing_maps = [#at, #row], iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"],
      lacis.name = "m"} ins(%s : !packed) outs(%lowest : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %e = linalg.generic {indexing_maps = [#at, #row, #at], iterator_types = ["parallel", "parallel"],
      lacis.loops = ["i", "j"], lacis.name = "e"} ins(%s, %m : !packed, tensor<?xf32>) outs(%z : !packed) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> !packed
  %d = linalg.generic {indexing_maps = [#at, #at], iterator_types = ["parallel", "parallel"], lacis.loops = ["i", "j"],
      lacis.name = "d"} ins(%e : !packed) outs(%z : !packed) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %kept = arith.cmpi ne, %i, %j : index
    %r = arith.select %kept, %a, %zero : f32
    linalg.yield %r : f32
  } -> !packed
  %l = linalg.generic {indexing_maps = [#at, #row], iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "j"],
      lacis.name = "l"} ins(%d : !packed) outs(%zeros : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"],
      lacis.loops = ["i"], lacis.name = "y"} ins(%l : tensor<?xf32>) outs(%empty : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.log %a : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
