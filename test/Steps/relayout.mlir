// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A nest before copies the operand to panels of four; the nest reads the panels.
// CHECK-LABEL: func.func @copy(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?x?xf32>
// CHECK:         %[[PANELS:.*]] = lacis.workspace
// CHECK:         lacis.loop "b0"<copy "x">
// CHECK:           lacis.loop "j"<copy "x">
// CHECK:             lacis.loop "b1"<copy "x">
// CHECK:               scf.if
// CHECK:                 lacis.read %[[X]]
// CHECK:               lacis.write %{{.*}} to %[[PANELS]]
// CHECK:         lacis.loop "b"
// CHECK:           lacis.read %[[PANELS]]
#panels = #lacis.format<(b, j) -> (b floordiv 4 : dense, j : dense, b mod 4 : dense)>
func.func @copy(%x: tensor<?x?xf32> {lacis.name = "x", lacis.axes = ["b", "j"]}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.relayout<operand = "x", layout = #panels>]} {
  lacis.loop "b" %b to %n {
    %v = lacis.read %x[%b, %b] : tensor<?x?xf32> -> f32
    lacis.write %v to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// A nest for small sizes has copies of its own, which run where it does; another one may follow.
// CHECK-LABEL: func.func @small(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?x?xf32>
// CHECK:         %[[PANELS:.*]] = lacis.workspace
// CHECK:         lacis.loop "b0"<case "upto4", copy "x">
// CHECK:         lacis.loop "b"<case "upto4">
// CHECK:           lacis.read %[[PANELS]]
// CHECK:         lacis.loop "b"<case "upto8">
// CHECK:           lacis.read %[[X]]
// CHECK:         lacis.loop "b"
// CHECK:           lacis.read %[[X]]
#panels = #lacis.format<(b, j) -> (b floordiv 4 : dense, j : dense, b mod 4 : dense)>
func.func @small(%x: tensor<?x?xf32> {lacis.name = "x", lacis.axes = ["b", "j"]}, %y: tensor<?xf32> {lacis.name = "y"})
    attributes {lacis.steps = [#lacis.upto<loop = "b", most = 4>, #lacis.relayout<operand = "upto4.x", layout = #panels>, #lacis.upto<loop = "b", most = 8>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    %v = lacis.read %x[%b, %b] : tensor<?x?xf32> -> f32
    lacis.write %v to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

#sparse = #lacis.format<(b, j) -> (b : dense, j : compressed)>
// expected-error @+2 {{relayout: the layout of 'x' must be dense levels over its axes}}
// expected-note @+1 {{asked for}}
func.func @sparse(%x: tensor<?x?xf32> {lacis.name = "x"}, %n: index)
    attributes {lacis.steps = [#lacis.relayout<operand = "x", layout = #sparse>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{relayout: no operand named 'z'}}
// expected-note @+1 {{asked for}}
func.func @no_operand(%n: index) attributes {lacis.steps = [#lacis.relayout<operand = "z", layout = 1 : i64>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

#sparse = #lacis.format<(b, j) -> (b : dense, j : compressed)>
// expected-error @+2 {{relayout: operand 'w' is sparse; its format says how it is stored}}
// expected-note @+1 {{asked for #lacis.relayout<operand = "w">; loops here are 'b'}}
func.func @encoded(%w: tensor<?x?xf32, #sparse> {lacis.name = "w"}, %n: index) attributes {lacis.steps = [#lacis.relayout<operand = "w">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{relayout: nothing in the nest reads or writes 'x'}}
// expected-note @+1 {{asked for}}
func.func @untouched(%x: tensor<?x?xf32> {lacis.name = "x", lacis.axes = ["b", "j"]}, %n: index) attributes {lacis.steps = [#lacis.relayout<operand = "x">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
