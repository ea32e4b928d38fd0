// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-lower-levels | FileCheck %s

// An execution layout has no axes of the batch: the panels of a head are as many as rows of the pattern say, axis 2 of the
// tensor, not axis 1.
// CHECK:       args = [{dim = 1 : i64, kind = "dim", operand = 0 : i64}, {dim = 2 : i64, kind = "dim", operand = 0 : i64},
// CHECK-SAME:          name = "pos2", sizes = [#lacis.size<ceildiv(arg 1, 64) * arg 0 + 1>]
// CHECK-LABEL: func.func @first(
// CHECK-SAME:    %{{.*}}: i64, %[[SIZE:.*]]: i64, %{{.*}}: !llvm.ptr
// CHECK:         %[[ROWS:.*]] = arith.trunci %[[SIZE]] : i64 to i32
// CHECK:         %[[PANELS:.*]] = arith.ceildivui %[[ROWS]], %{{.*}} : i32
// CHECK:         arith.muli %{{.*}}, %[[PANELS]] : i32
#blocks = #lacis.format<(b, h, i, j) -> (b : batch, h : dense, i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
#panels = #lacis.format<(h, i, j) -> (h : dense, i floordiv 64 : dense, j floordiv 16 : compressed, i floordiv 16 mod 4 : bitmap, i mod 16 : dense, j mod 16 : dense)>
module attributes {lacis.stage = "loops"} {
  func.func @first(%p: tensor<?x?x?x?xi1, #blocks> {lacis.name = "pattern", lacis.axes = ["b", "h", "i", "j"]},
                   %y: tensor<2x3xi32> {lacis.name = "y", lacis.axes = ["h", "n"], lacis.output}) attributes {lacis.kernel} {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %q = lacis.regroup #lacis.layout<format = #panels> of %p : tensor<?x?x?x?xi1, #blocks> to tensor<?x?x?xi1, #panels>
    lacis.loop "h" %h to %c2 {
      lacis.loop "n" %n to %c3 {
        %head = lacis.locate %q[0] at %c0(%h) : tensor<?x?x?xi1, #panels>
        %panel = lacis.locate %q[1] at %head(%n) : tensor<?x?x?xi1, #panels>
        %lo, %hi = lacis.bounds %q[2] at %panel : tensor<?x?x?xi1, #panels>
        %count = arith.subi %hi, %lo : index
        %word = arith.index_cast %count : index to i32
        lacis.write %word to %y[%h, %n] : i32 to tensor<2x3xi32>
        lacis.yield
      }
      lacis.yield
    }
    return
  }
}
