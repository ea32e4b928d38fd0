// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-lower-levels | FileCheck %s
// RUN: lacis-opt %s -split-input-file -lacis-lower-levels=outline=true | FileCheck %s --check-prefix=OUT

// Four rows are read as vectors, interleaved twice, and written as four rows.
// CHECK-LABEL:   func.func @single(
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr -> vector<4xf32>
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 4, 1, 5]
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [2, 6, 3, 7]
// CHECK-COUNT-2: vector.shuffle
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 1, 4, 5]
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [2, 3, 6, 7]
// CHECK-COUNT-2: vector.shuffle
// CHECK-COUNT-4: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr
// Many nests copy so, and call one function.
// OUT-LABEL:     func.func @single(
// OUT-COUNT-2:   llvm.call @copy_transposed_4xf32_4_4(
// OUT-NOT:       vector.shuffle
// OUT:           llvm.func @copy_transposed_4xf32_4_4(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: !llvm.ptr, %{{.*}}: i64) attributes {no_inline
// OUT-COUNT-8:   vector.shuffle
// OUT-NOT:       llvm.func
func.func @single(%x: tensor<?x?xf32> {lacis.name = "0", lacis.axes = ["b", "j"]}, %t: tensor<?x?xf32> {lacis.name = "out", lacis.axes = ["j", "b"], lacis.output})
    attributes {lacis.kernel} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    lacis.copy_transposed 4 of %x[%b, %c0] rows 0 along 1 to %t[%c0, %b] rows 0 along 1
      : tensor<?x?xf32> to tensor<?x?xf32>
    lacis.copy_transposed 4 of %x[%c0, %b] rows 0 along 1 to %t[%b, %c0] rows 0 along 1
      : tensor<?x?xf32> to tensor<?x?xf32>
    lacis.yield
  }
  return
}

// -----

// Two numbers of 64 bits fill a part of 128 bits; then whole parts change places.
// CHECK-LABEL:   func.func @double(
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 4, 2, 6]
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [1, 5, 3, 7]
// CHECK-COUNT-2: vector.shuffle
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [0, 1, 4, 5]
// CHECK:         vector.shuffle %{{.*}}, %{{.*}} [2, 3, 6, 7]
// A checked kernel guards each access, so it calls nothing.
// OUT-LABEL:     func.func @double(
// OUT-NOT:       llvm.call
// OUT:           vector.shuffle
func.func @double(%x: tensor<?x?xf64> {lacis.name = "0", lacis.axes = ["b", "j"]}, %t: tensor<?x?xf64> {lacis.name = "out", lacis.axes = ["j", "b"], lacis.output})
    attributes {lacis.kernel, lacis.checked} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf64>
  lacis.loop "b" %b to %n {
    lacis.copy_transposed 4 of %x[%b, %c0] rows 0 along 1 to %t[%c0, %b] rows 0 along 1
      : tensor<?x?xf64> to tensor<?x?xf64>
    lacis.yield
  }
  return
}
