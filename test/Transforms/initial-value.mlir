// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-linalg-to-loops | FileCheck %s
// RUN: lacis-compile %s --target=cpu --emit=obj -o %t.o
// RUN: lacis-compile %s --target=cuda:sm_80 --emit=ptx -o - | FileCheck %s --check-prefix=PTX

// A sum whose initial value is an argument begins with the argument's elements and leaves it as it was.
#w = #lacis.format<(i, j) -> (i : dense, j : compressed)>

// CHECK-LABEL: func.func @linear(
// CHECK-SAME:    %[[Z:[^:,]*]]: tensor<?x?xf32> {lacis.axes = ["b", "i"], lacis.name = "z"}, %[[Y:[^:]*]]: tensor<?x?xf32> {{.*}}lacis.output
// CHECK:         %[[FIRST:.*]] = lacis.read %[[Z]][
// CHECK:         lacis.level_loop {{.*}} iter(%{{.*}} = %[[FIRST]])
// CHECK:         lacis.write %{{.*}} to %[[Y]][
// PTX:           .entry linear_{{[0-9]+}}(
func.func @linear(%w: tensor<?x?xf32, #w> {lacis.name = "w"}, %x: tensor<?x?xf32> {lacis.name = "x"},
                  %z: tensor<?x?xf32> {lacis.name = "z"}) -> tensor<?x?xf32> attributes {lacis.kernel, lacis.steps = []} {
  %s = linalg.generic {
      indexing_maps = [affine_map<(b, i, j) -> (i, j)>, affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i)>],
      iterator_types = ["parallel", "parallel", "reduction"], lacis.loops = ["b", "i", "j"]}
      ins(%w, %x : tensor<?x?xf32, #w>, tensor<?x?xf32>) outs(%z : tensor<?x?xf32>) {
    ^bb0(%a: f32, %v: f32, %acc: f32):
      %m = arith.mulf %a, %v : f32
      %r = arith.addf %acc, %m : f32
      linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %s : tensor<?x?xf32>
}
