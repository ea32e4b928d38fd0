// SPDX-License-Identifier: Apache-2.0
// RUN: %outside lacis-opt %s -lacis-apply-steps=target=cpu | FileCheck %s
// RUN: not lacis-opt %s -lacis-apply-steps=target=cpu 2>&1 | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: error: unroll: no loop named 'i1'

// A rule from outside is asked before those of the core; it is chosen, or leaves a remark. A core without the folder does
// not know it.
// CHECK-LABEL: @chosen(
// CHECK-NOT:   lacis.remarks
// CHECK-SAME:  lacis.steps = [#lacis.split<loop = "i", factor = 4>, #lacis.parallel<loop = "i0">]
func.func @chosen(%y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}, %n: index) attributes {outside.strips} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    lacis.write %zero to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// CHECK-LABEL: @not_asked(
// CHECK-SAME:  lacis.remarks = ["strips: the function asks for no strips"]
// CHECK-SAME:  lacis.steps = [#lacis.parallel<loop = "i">]
func.func @not_asked(%y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}, %n: index) {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    lacis.write %zero to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// A user's step that rules would take otherwise drops them, each with a remark.
// CHECK-LABEL: @other(
// CHECK-SAME:  "strips: #lacis.split<loop = \22i\22, factor = 8>: the rule takes #lacis.split<loop = \22i\22, factor = 4>"
// CHECK-SAME:  "cpu: #lacis.split<loop = \22i\22, factor = 8>: the rule has a use for loop 'i'"
func.func @other(%y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}, %n: index)
    attributes {outside.strips, lacis.steps = [#lacis.split<loop = "i", factor = 8>]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    lacis.write %zero to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// A step on a loop that the rule leaves free stays.
// CHECK-LABEL: @besides(
// CHECK-NOT:   lacis.remarks
// CHECK-SAME:  lacis.steps = [#lacis.split<loop = "i", factor = 4>, #lacis.parallel<loop = "i0">, #lacis.unroll<loop = "i1">]
func.func @besides(%y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}, %n: index)
    attributes {outside.strips, lacis.steps = [#lacis.unroll<loop = "i1">]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    lacis.write %zero to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
