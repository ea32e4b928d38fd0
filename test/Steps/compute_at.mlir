// RUN: lacis-opt %s -lacis-apply-steps | FileCheck %s
// RUN: lacis-opt %s -lacis-apply-steps -lacis-lower-levels -lacis-map-to-ranges | FileCheck %s --check-prefix=TARGET

// A tile of four by eight leaves as soon as it is full, and a thread has it to itself.
// CHECK-LABEL: func.func @double(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?x?xf32>
// CHECK-SAME:    %[[Y:[^:]*]]: tensor<?x?xf32>
// CHECK-NOT:     lacis.workspace
// CHECK:         lacis.loop "b0" %[[B:.*]] to
// CHECK:           lacis.loop "i0" %[[I:.*]] to
// CHECK:             %[[TILE:.*]] = lacis.workspace(%{{.*}}) place<private>
// CHECK:             lacis.loop "i1" %[[I1:.*]] to
// CHECK:               lacis.loop "b1" %[[B1:.*]] to
// CHECK:                 lacis.read %[[X]]
// CHECK:                 lacis.write %{{.*}} to %[[TILE]][%[[B1]], %[[I1]]]
// CHECK:             lacis.loop "i1"<copy "y"> %[[YI1:.*]] to
// CHECK:               lacis.loop "b1"<copy "y"> %[[YB1:.*]] to
// CHECK:                 %[[ROWS:.*]] = arith.muli %[[B]]
// CHECK:                 %[[ROW:.*]] = arith.addi %[[ROWS]], %[[YB1]]
// CHECK:                 %[[V:.*]] = lacis.read %[[TILE]][%[[YB1]], %[[YI1]]]
// CHECK:                 lacis.write %[[V]] to %[[Y]][%[[ROW]]
// CHECK:             } bind<parallel>
// CHECK-NOT:     lacis.loop

// One launch, whose tile is made before its loops.
// TARGET-LABEL: func.func @double_0(
// TARGET-NOT:     scf.for
// TARGET:         llvm.alloca
// TARGET:         scf.for
// TARGET-NOT:   func.func
#panels = #lacis.format<(b, i) -> (b floordiv 4 : dense, i : dense, b mod 4 : dense)>
func.func @double(%x: tensor<?x?xf32> {lacis.name = "x", lacis.axes = ["b", "i"], lacis.divisible = array<i64: 4, 8>},
                  %y: tensor<?x?xf32> {lacis.output, lacis.name = "y", lacis.axes = ["b", "i"], lacis.divisible = array<i64: 4, 8>})
    attributes {lacis.kernel, lacis.steps = [#lacis.relayout<operand = "y", layout = #panels>, #lacis.split<loop = "y.i", factor = 8>,
                               #lacis.split<loop = "b", factor = 4>, #lacis.split<loop = "i", factor = 8>,
                               #lacis.reorder<loops = ["b0", "i0", "i1", "b1"]>,
                               #lacis.compute_at<operand = "y", loop = "i0">]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %m {
      %v = lacis.read %x[%b, %i] : tensor<?x?xf32> -> f32
      %w = arith.addf %v, %v : f32
      lacis.write %w to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}
