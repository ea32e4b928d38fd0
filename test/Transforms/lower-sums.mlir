// RUN: lacis-opt %s -lacis-lower-sums | FileCheck %s

// The product of the second part accumulates on the product of the first.
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#sum = #lacis.sum<ell = #ell when fits, rest = #csr>

// CHECK-LABEL: func.func @matvec(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, #lacis.sum<
// CHECK:         %[[ELL:.*]] = lacis.part "ell" of %[[W]]
// CHECK:         %[[FIRST:.*]] = linalg.generic {{.*}} ins(%[[ELL]], {{.*}} outs(%[[INIT:[^ ]*]] :
// CHECK:         %[[REST:.*]] = lacis.part "rest" of %[[W]]
// CHECK:         %[[BOTH:.*]] = linalg.generic {{.*}} ins(%[[REST]], {{.*}} outs(%[[FIRST]] :
// CHECK:         return %[[BOTH]]
func.func @matvec(%w: tensor<?x?xf32, #sum>, %x: tensor<?xf32>, %init: tensor<?xf32>) -> tensor<?xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                        affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%w, %x : tensor<?x?xf32, #sum>, tensor<?xf32>) outs(%init : tensor<?xf32>) {
  ^bb0(%a: f32, %v: f32, %acc: f32):
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %acc, %m : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
