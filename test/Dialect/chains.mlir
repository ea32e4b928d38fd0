// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

// The operations that chain products print as they are written.

!tiles = !lacis.tile<2x64x64xbf16>

// CHECK-LABEL: func @chain(
func.func @chain(%y: tensor<?x?xbf16>, %k: !tiles, %v: !tiles, %i: index, %before: !lacis.acc<64x1xf32>) {
  // CHECK: lacis.roles groups 2 producer (%{{.*}}: index) {
  lacis.roles groups 2 producer (%g : index) {
    lacis.yield
  // CHECK: } consumers 1 (%{{.*}}: index, %{{.*}}: index) {
  } consumers 1 (%c : index, %g : index) {
    // CHECK: %[[S:.*]] = lacis.mma %{{.*}}, %{{.*}} : !lacis.tile<2x64x64xbf16>, !lacis.tile<2x64x64xbf16> into !lacis.acc<64x64xf32>
    %s = lacis.mma %k, %v : !tiles, !tiles into !lacis.acc<64x64xf32>
    // CHECK: lacis.map %[[S]] at[%{{.*}}, %{{.*}} : index, index] {
    %t = lacis.map %s at [%i, %i : index, index] {
    ^bb0(%e: f32, %row: index, %column: index):
      lacis.yield %e : f32
    } : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
    // CHECK: lacis.reduce_rows "max" %{{.*}} onto %{{.*}} : !lacis.acc<64x64xf32> -> !lacis.acc<64x1xf32>
    %m = lacis.reduce_rows "max" %t onto %before : !lacis.acc<64x64xf32> -> !lacis.acc<64x1xf32>
    // CHECK: lacis.reduce_rows "sum" %{{.*}} : !lacis.acc<64x64xf32> -> !lacis.acc<64x4xf32>
    %l = lacis.reduce_rows "sum" %t : !lacis.acc<64x64xf32> -> !lacis.acc<64x4xf32>
    %b = lacis.map %t {
    ^bb0(%e: f32):
      %h = arith.truncf %e : f32 to bf16
      lacis.yield %h : bf16
    } : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xbf16>
    // CHECK: lacis.mma %{{.*}}, %{{.*}}[%{{.*}} : index] transposed : !lacis.acc<64x64xbf16>, !lacis.tile<2x64x64xbf16> into !lacis.acc<64x128xf32>
    %o = lacis.mma %b, %v[%i : index] transposed : !lacis.acc<64x64xbf16>, !tiles into !lacis.acc<64x128xf32>
    // CHECK: lacis.read_tile %{{.*}}[%{{.*}} : index] : !lacis.tile<2x64x64xbf16> to !lacis.acc<64x128xbf16>
    %q = lacis.read_tile %k[%i : index] : !tiles to !lacis.acc<64x128xbf16>
    // CHECK: lacis.store_tile %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] through %{{.*}} : !lacis.tile<2x64x64xbf16> from %{{.*}} : index : !lacis.acc<64x128xf32> to
    lacis.store_tile %o to %y[%i, %i] through %k : !tiles from %i : index : !lacis.acc<64x128xf32> to tensor<?x?xbf16>[index, index]
    lacis.yield
  }
  return
}
