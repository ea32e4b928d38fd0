// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-levels | FileCheck %s

// Into the values of a sampled output goes what is an entry; padding becomes 0. Position and row become a row, and
// there are as many rows as slots times rows of a block.
// CHECK-LABEL: func.func @padding(
// CHECK:         %[[ROWS:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK:         %[[ROW:.*]] = arith.addi %[[ROWS]], %{{.*}} : i32
// CHECK:         %[[ENTRIES:.*]] = lacis.load_entries %{{.*}}[%[[ROW]]] from %{{.*}} of %{{.*}} stride 64
// CHECK:         %[[KEPT:.*]] = lacis.map %{{.*}}, %[[ENTRIES]] {
// CHECK:           %[[IS:.*]] = arith.cmpf oeq
// CHECK:           arith.select %[[IS]]
// CHECK:         lacis.store_tile %[[KEPT]] to %{{.*}}[%[[ROW]], %{{.*}}] {shape = [#lacis.size<arg {{[0-9]+}} * 64>, #lacis.size<64>], type = bf16}
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
func.func @padding(%w: tensor<?x?xi1, #bsr> {lacis.name = "w", lacis.axes = ["i", "j"]},
                   %bias: tensor<?xbf16> {lacis.name = "bias", lacis.axes = ["i"]},
                   %dw: tensor<?x?xbf16, #bsr> {lacis.name = "dw", lacis.axes = ["i", "j"], lacis.output, lacis.sample = 0})
    attributes {lacis.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %bias, %c0 : tensor<?xbf16>
  lacis.loop "i" %i to %rows {
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : index) {
      %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
      lacis.store_tile %acc to %dw[%i, %c0, %c0] : !lacis.acc<64x64xf32> to tensor<?x?xbf16, #bsr>[index, index, index]
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// CHECK-LABEL: func.func @rows(
// CHECK:         lacis.load_rows %{{.*}}[%{{.*}}] of %{{.*}} : i32 {type = bf16} : !llvm.ptr[i32] to !lacis.acc<64x1xf32>
func.func @rows(%bias: tensor<?xbf16> {lacis.name = "bias", lacis.axes = ["i"]},
                %y: tensor<?x?xbf16> {lacis.name = "y", lacis.axes = ["i", "i"], lacis.output}) attributes {lacis.kernel} {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %bias, %c0 : tensor<?xbf16>
  lacis.loop "i" %i to %rows {
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : index) {
      %shift = lacis.load_rows %bias[%i] : tensor<?xbf16>[index] to !lacis.acc<64x1xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// A packed tensor that is not sampled on a pattern is no target.
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @target(%bias: tensor<?xbf16> {lacis.name = "bias", lacis.axes = ["i"]},
                  %y: tensor<?x?xbf16, #csr> {lacis.name = "y", lacis.axes = ["i", "j"], lacis.output}) attributes {lacis.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %bias, %c0 : tensor<?xbf16>
  lacis.loop "i" %i to %rows {
    lacis.roles producer {
      lacis.yield
    } consumers 1 (%c : index) {
      %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
      // expected-error@+1 {{store_tile: the target is dense, or sampled on a pattern that ends in a stored block}}
      lacis.store_tile %acc to %y[%i, %c0, %c0] : !lacis.acc<64x64xf32> to tensor<?x?xbf16, #csr>[index, index, index]
      lacis.yield
    }
    lacis.yield
  }
  return
}
