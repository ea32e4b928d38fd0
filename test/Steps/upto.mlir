// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// One vector, two to four, and more: three nests, each a launch whose size is 0 unless the size of b is in its range.
// CHECK-LABEL: func.func @fill(
// CHECK-SAME:    lacis.cases = [{argument = 0 : i64, axis = 0 : i64, name = "upto1", upto = 1 : i64}, {argument = 0 : i64, axis = 0 : i64, name = "upto4", upto = 4 : i64}]
// CHECK:         lacis.loop "b"<case "upto1">
// CHECK:         lacis.loop "b"<case "upto4">
// CHECK:         lacis.loop "b"
func.func @fill(%y: tensor<?x?xf32> {lacis.axes = ["b", "i"], lacis.name = "y"})
    attributes {lacis.kernel, lacis.steps = [#lacis.upto<loop = "b", most = 1>, #lacis.upto<loop = "b", most = 4>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %y, %c0 : tensor<?x?xf32>
  %m = tensor.dim %y, %c1 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %m {
      lacis.write %zero to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{upto: 4 sizes are none that is left; 4 are taken}}
// expected-note @+1 {{asked for}}
func.func @again(%y: tensor<?xf32>) attributes {lacis.steps = [#lacis.upto<loop = "b", most = 4>, #lacis.upto<loop = "b", most = 4>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{upto: loop 'b0' is no whole letter of the main nest; its own size decides}}
// expected-note @+1 {{asked for}}
func.func @part(%y: tensor<?xf32>) attributes {lacis.steps = [#lacis.split<loop = "b", factor = 4>, #lacis.upto<loop = "b0", most = 4>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{upto: another letter than 'i' has nests for small sizes already}}
// expected-note @+1 {{asked for}}
func.func @letters(%y: tensor<?x?xf32>) attributes {lacis.steps = [#lacis.upto<loop = "b", most = 1>, #lacis.upto<loop = "i", most = 4>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %y, %c0 : tensor<?x?xf32>
  %m = tensor.dim %y, %c1 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %m {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{upto: loops of the nest are marked already; say it before other steps}}
// expected-note @+1 {{asked for}}
func.func @marked(%y: tensor<?x?xf32>) attributes {lacis.steps = [#lacis.parallel<loop = "i">, #lacis.upto<loop = "b", most = 4>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{upto: an operand is copied for all sizes already; say it before relayout}}
// expected-note @+1 {{asked for}}
func.func @copied(%y: tensor<?x?xf32> {lacis.name = "y"}) attributes {lacis.steps = [#lacis.relayout<operand = "y">, #lacis.upto<loop = "i", most = 4>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x?xf32>
  lacis.loop "i" %i to %n {
    lacis.write %zero to %y[%i, %i] : f32 to tensor<?x?xf32>
    lacis.yield
  }
  return
}
