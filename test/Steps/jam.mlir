// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// CHECK-LABEL: func.func @rows(
// CHECK:         lacis.loop "i"
// CHECK:         jam<2>
func.func @rows(%n: index) attributes {lacis.steps = [#lacis.jam<loop = "i">]} {
  %c2 = arith.constant 2 : index
  lacis.loop "b" %b to %n {
    lacis.loop "i" %i to %c2 {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{jam: loop 'i' has no constant trip count; split it first}}
// expected-note @+1 {{asked for}}
func.func @no_trip(%n: index) attributes {lacis.steps = [#lacis.jam<loop = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{jam: loop 'j' carries a sum; jam a loop around it, or unroll it}}
// expected-note @+1 {{asked for}}
func.func @sum(%n: index) attributes {lacis.steps = [#lacis.jam<loop = "j">]} {
  %zero = arith.constant 0.0 : f32
  %c2 = arith.constant 2 : index
  lacis.loop "i" %i to %n {
    %s = lacis.loop "j" %j to %c2 iter(%acc = %zero) -> (f32) {
      lacis.yield %acc : f32
    }
    lacis.yield
  }
  return
}
