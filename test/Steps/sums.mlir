// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-linalg-to-loops -lacis-apply-steps | FileCheck %s

// A loop that carries a sum splits and reorders like others; the sum goes through all of its loops.
// CHECK-LABEL: func.func @product(
// CHECK:         lacis.loop "i"
// CHECK:           lacis.loop "k1" %[[K1:.*]] to %c4{{.*}} iter(%[[OUTER:.*]] = %{{.*}}) -> (f32)
// CHECK:             lacis.loop "k0" %[[K0:.*]] to %{{.*}} iter(%[[ACC:.*]] = %[[OUTER]]) -> (f32)
// CHECK:               %[[SCALED:.*]] = arith.muli %[[K0]], %c4
// CHECK:               %[[K:.*]] = arith.addi %[[SCALED]], %[[K1]]
// CHECK:               scf.if %{{.*}} -> (f32)
// CHECK:                 lacis.read %{{.*}}, %[[K]]]
// CHECK:               } else {
// CHECK:                 scf.yield %[[ACC]]
func.func @product(%a: tensor<?x?xf32> {lacis.name = "a"}, %b: tensor<?xf32> {lacis.name = "b"}) -> tensor<?xf32>
    attributes {lacis.steps = [#lacis.split<loop = "k", factor = 4>, #lacis.reorder<loops = ["k1", "k0"]>,
                               #lacis.parallel<loop = "i">]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>],
                       iterator_types = ["parallel", "reduction"], lacis.loops = ["i", "k"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%x: f32, %v: f32, %acc: f32):
    %m = arith.mulf %x, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
