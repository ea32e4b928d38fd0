// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// for i: for j  -->  for j: for i
// CHECK-LABEL: func.func @fill(
// CHECK:         lacis.loop "j" %[[J:.*]] to
// CHECK:           lacis.loop "i" %[[I:.*]] to
// CHECK:             lacis.write %{{.*}} to %{{.*}}[%[[I]], %[[J]]]
func.func @fill(%y: tensor<?x?xf32>, %n: index) attributes {lacis.steps = [#lacis.reorder<loops = ["j", "i"]>]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    lacis.loop "j" %j to %n {
      lacis.write %zero to %y[%i, %j] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{reorder: loop "i" is named twice}}
// expected-note @+1 {{asked for}}
func.func @twice(%n: index) attributes {lacis.steps = [#lacis.reorder<loops = ["i", "i"]>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{reorder: no loop is named}}
// expected-note @+1 {{asked for}}
func.func @none(%n: index) attributes {lacis.steps = [#lacis.reorder<loops = []>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{reorder: the loops are not perfectly nested in 'j'}}
// expected-note @+1 {{asked for}}
func.func @siblings(%n: index) attributes {lacis.steps = [#lacis.reorder<loops = ["j", "i"]>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  lacis.loop "j" %j to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+1 {{'loops': a list of names in quotes}}
func.func @number() attributes {lacis.steps = [#lacis.reorder<loops = [3]>]} {
  return
}
