// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// The size is that of each operand that has the letter, and known from then on.
// CHECK-LABEL: func.func @sizes(
// CHECK-SAME:    tensor<8x?xf32>
// CHECK:         lacis.loop "b" %{{.*}} to %c8
// CHECK:         vectorize<8>
func.func @sizes(%y: tensor<?x?xf32> {lacis.axes = ["b", "i"]})
    attributes {lacis.steps = [#lacis.vectorize<loop = "b", width = 8>, #lacis.specialize<sizes = {b = 8}>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{specialize: no operand has letter "k"}}
// expected-note @+1 {{asked for}}
func.func @no_letter(%y: tensor<?xf32> {lacis.axes = ["b"]}, %n: index)
    attributes {lacis.steps = [#lacis.specialize<sizes = {k = 8}>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{specialize: -1 : i64 is no size of letter "b"}}
// expected-note @+1 {{asked for}}
func.func @no_size(%y: tensor<?xf32> {lacis.axes = ["b"]}, %n: index)
    attributes {lacis.steps = [#lacis.specialize<sizes = {b = -1}>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}
