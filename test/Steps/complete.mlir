// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A schedule of the user's own gets what it lacks to be parallel, and nothing else.
// CHECK-LABEL: func.func @partial(
// CHECK-SAME:    lacis.steps = [#lacis.split<loop = "b", factor = 8>, #lacis.parallel<loop = "b0">, #lacis.parallel<loop = "i">]
func.func @partial(%y: tensor<?x?xf32> {lacis.axes = ["b", "i"]}, %n: index)
    attributes {lacis.steps = [#lacis.split<loop = "b", factor = 8>]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %n {
      lacis.write %zero to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// A complete one gets nothing.
// CHECK-LABEL: func.func @complete(
// CHECK-SAME:    lacis.steps = [#lacis.parallel<loop = "b">, #lacis.parallel<loop = "i">]
func.func @complete(%y: tensor<?x?xf32> {lacis.axes = ["b", "i"]}, %n: index)
    attributes {lacis.steps = [#lacis.parallel<loop = "b">, #lacis.parallel<loop = "i">]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %n {
      lacis.write %zero to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// A step is refused at the line that the function's location has for it.
// expected-error @+2 {{split: no loop named 'k'}}
// expected-note @+1 {{asked for #lacis.split<loop = "k", factor = 4>; loops here are 'b0', 'b1'}}
func.func @line(%n: index) attributes {lacis.steps = [#lacis.split<loop = "b", factor = 8>, #lacis.split<loop = "k", factor = 4>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+1 {{steps: 3 : i64 is not a step of a schedule}}
func.func @no_step(%n: index) attributes {lacis.steps = [3]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}
