// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

// Boxes of a batch of matrices, and of one matrix that has the rows of all.
// CHECK-LABEL: func.func @boxes(
// CHECK:         lacis.load_tile %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] to %{{.*}} : tensor<?x?x?xbf16>[index, index, index]
// CHECK:         lacis.load_tile %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}} : tensor<?x?x?xbf16>[index, index]
// CHECK:         lacis.store_tile %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] transposed
func.func @boxes(%x: tensor<?x?x?xbf16>, %n: index, %t: !lacis.tile<64x64xbf16>, %acc: !lacis.acc<64x64xf32>) {
  lacis.load_tile %x[%n, %n, %n] to %t : tensor<?x?x?xbf16>[index, index, index] to !lacis.tile<64x64xbf16>
  lacis.load_tile %x[%n, %n] to %t : tensor<?x?x?xbf16>[index, index] to !lacis.tile<64x64xbf16>
  lacis.store_tile %acc to %x[%n, %n, %n] transposed : !lacis.acc<64x64xf32> to tensor<?x?x?xbf16>[index, index, index]
  return
}

// Values in copies that share a pattern.
// CHECK-LABEL: func.func @copies(
// CHECK:         lacis.store_tile %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:         lacis.store_blocks %{{.*}} to %{{.*}}[%{{.*}}] batch %{{.*}} : index
#heads = #lacis.format<(h, i, j) -> (h : batch, i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @copies(%dw: tensor<?x?x?xbf16, #heads>, %n: index, %acc: !lacis.acc<64x64xf32>) {
  lacis.store_tile %acc to %dw[%n, %n, %n, %n] : !lacis.acc<64x64xf32> to tensor<?x?x?xbf16, #heads>[index, index, index, index]
  lacis.store_blocks %acc to %dw[%n] batch %n : index : !lacis.acc<64x64xf32> to tensor<?x?x?xbf16, #heads>[index]
  return
}

// CHECK-LABEL: func.func @vector(
// CHECK:         lacis.load_columns %{{.*}}[%{{.*}}] : tensor<?xbf16>[index] to !lacis.acc<64x64xf32>
func.func @vector(%v: tensor<?xbf16>, %n: index) -> !lacis.acc<64x64xf32> {
  %0 = lacis.load_columns %v[%n] : tensor<?xbf16>[index] to !lacis.acc<64x64xf32>
  return %0 : !lacis.acc<64x64xf32>
}

// CHECK-LABEL: func.func @rows(
// CHECK: lacis.store_rows %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] : !lacis.acc<64x1xf32> to tensor<?x?xf32>[index, index]
func.func @rows(%lse: tensor<?x?xf32>, %of: !lacis.acc<64x1xf32>, %head: index, %row: index) {
  lacis.store_rows %of to %lse[%head, %row] : !lacis.acc<64x1xf32> to tensor<?x?xf32>[index, index]
  return
}
