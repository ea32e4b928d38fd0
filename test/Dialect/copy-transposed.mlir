// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @tile(
// CHECK:         lacis.copy_transposed 8 of %{{.*}}[%{{.*}}, %{{.*}}] rows 0 along 1 to %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] rows 1 along 2
// CHECK-SAME:      : tensor<8x8xf32> to tensor<1x8x8xf32>
func.func @tile(%x: tensor<8x8xf32>, %y: tensor<1x8x8xf32>) {
  %c0 = arith.constant 0 : index
  lacis.copy_transposed 8 of %x[%c0, %c0] rows 0 along 1 to %y[%c0, %c0, %c0] rows 1 along 2
    : tensor<8x8xf32> to tensor<1x8x8xf32>
  return
}

// -----

func.func @rows_along_one_axis(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{rows begin along one axis and lie along another}}
  lacis.copy_transposed 8 of %x[%c0, %c0] rows 0 along 0 to %y[%c0, %c0] rows 0 along 1
    : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

func.func @rows_of_no_axis(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{axis 2 does not exist: the tensor has 2}}
  lacis.copy_transposed 8 of %x[%c0, %c0] rows 0 along 1 to %y[%c0, %c0] rows 2 along 1
    : tensor<8x8xf32> to tensor<8x8xf32>
  return
}

// -----

func.func @other_elements(%x: tensor<8x8xf32>, %y: tensor<8x8xf64>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{element types must agree: 'f32' and 'f64'}}
  lacis.copy_transposed 8 of %x[%c0, %c0] rows 0 along 1 to %y[%c0, %c0] rows 0 along 1
    : tensor<8x8xf32> to tensor<8x8xf64>
  return
}

// -----

func.func @no_power_of_two(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{copies a tile whose size is a power of two, at most 1024; got 7}}
  lacis.copy_transposed 7 of %x[%c0, %c0] rows 0 along 1 to %y[%c0, %c0] rows 0 along 1
    : tensor<8x8xf32> to tensor<8x8xf32>
  return
}
