// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-vectorize-loops -lacis-lower-levels | FileCheck %s
// RUN: lacis-opt %s -split-input-file -lacis-vectorize-loops -lacis-lower-levels -lacis-map-to-grid | FileCheck %s --check-prefix=GRID

// A vector is added lane by lane, where the lane is active.
// CHECK-LABEL: func.func @add(
// CHECK:         %[[LANE:.*]] = vector.extract %{{.*}}[0] : f32 from vector<2xf32>
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %[[LANE]] monotonic : !llvm.ptr, f32
// CHECK:         llvm.atomicrmw fadd
module attributes {lacis.stage = "loops"} {
  func.func @add(%x: tensor<8xf32> {lacis.name = "x", lacis.axes = ["i"]}, %y: tensor<8xf32> {lacis.name = "y", lacis.axes = ["i"], lacis.output}) attributes {lacis.kernel} {
    %c4 = arith.constant 4 : index
    %c2 = arith.constant 2 : index
    lacis.loop "i0" %i0 to %c4 {
      lacis.loop "i1" %i1 to %c2 {
        %first = arith.muli %i0, %c2 : index
        %i = arith.addi %first, %i1 : index
        %v = lacis.read %x[%i] : tensor<8xf32> -> f32
        lacis.write %v to %y[%i] atomic<fadd> : f32 to tensor<8xf32>
        lacis.yield
      } vectorize<2>
      lacis.yield
    } bind<block.x>
    return
  }
}

// -----

// All lanes that share a sum have it; the first of them adds it.
// GRID-LABEL: func.func @total_0(
// GRID:         %[[LANE:.*]] = arith.remui
// GRID:         nvvm.shfl.sync bfly
// GRID:         %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0_i32
// GRID:         scf.if %[[FIRST]] {
// GRID-NEXT:      llvm.atomicrmw fmaximum
module attributes {lacis.stage = "loops"} {
  func.func @total(%x: tensor<32xf32> {lacis.name = "x", lacis.axes = ["i"]}, %y: tensor<4xf32> {lacis.name = "y", lacis.axes = ["b"], lacis.output}) attributes {lacis.kernel} {
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    lacis.loop "b" %b to %c4 {
      %sum = lacis.loop "i" %i to %c32 iter(%acc = %zero) -> (f32) {
        %v = lacis.read %x[%i] : tensor<32xf32> -> f32
        %next = arith.maximumf %acc, %v : f32
        lacis.yield %next : f32
      } bind<lane>
      lacis.write %sum to %y[%b] atomic<fmaximum> : f32 to tensor<4xf32>
      lacis.yield
    } bind<block.x>
    return
  }
}
