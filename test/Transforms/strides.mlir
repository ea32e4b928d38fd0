// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-levels | FileCheck %s

// A batch of matrices, each access of which says every index, is read by the strides of its tensor; one that is written,
// and a matrix alone, are contiguous.
// CHECK:       args = [{dim = 0 : i64, kind = "stride", operand = 0 : i64}, {dim = 1 : i64, kind = "stride", operand = 0 : i64},
// CHECK-SAME:          {kind = "operand", operand = 0 : i64, strided = true}, {kind = "operand", operand = 1 : i64}, {kind = "output"}]
// CHECK-LABEL: func.func @copy(
// CHECK-SAME:    %[[S0:.*]]: i64, %[[S1:.*]]: i64, %[[X:.*]]: !llvm.ptr {llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr {llvm.noalias, llvm.readonly},
// CHECK:           %[[H:.*]] = arith.muli %{{.*}}, %[[S0]] : i64
// CHECK:           %[[I:.*]] = arith.muli %{{.*}}, %[[S1]] : i64
// CHECK:           %[[ROW:.*]] = arith.addi %[[H]], %[[I]] : i64
// CHECK:           %[[PLACE:.*]] = arith.addi %[[ROW]], %{{.*}} : i64
// CHECK:           llvm.getelementptr %[[X]][%[[PLACE]]]
!heads = tensor<3x8x16xf32>
module attributes {lacis.stage = "loops"} {
  func.func @copy(%x: !heads {lacis.name = "x", lacis.axes = ["h", "i", "d"]},
                  %w: tensor<8x16xf32> {lacis.name = "w", lacis.axes = ["i", "d"]},
                  %y: !heads {lacis.name = "y", lacis.axes = ["h", "i", "d"], lacis.output}) attributes {lacis.kernel} {
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    lacis.loop "h" %h to %c3 {
      lacis.loop "i" %i to %c8 {
        lacis.loop "d" %d to %c16 {
          %a = lacis.read %x[%h, %i, %d] : !heads -> f32
          %b = lacis.read %w[%i, %d] : tensor<8x16xf32> -> f32
          %sum = arith.addf %a, %b : f32
          lacis.write %sum to %y[%h, %i, %d] : f32 to !heads
          lacis.yield
        }
        lacis.yield
      }
      lacis.yield
    }
    return
  }
}
