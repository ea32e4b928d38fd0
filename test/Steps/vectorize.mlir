// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// CHECK-LABEL: func.func @lanes(
// CHECK:         lacis.loop "i"
// CHECK:           lacis.loop "b"
// CHECK:         vectorize<8>
func.func @lanes(%y: tensor<?x?xf32>, %n: index) attributes {lacis.steps = [#lacis.vectorize<loop = "b", width = 8>]} {
  %zero = arith.constant 0.0 : f32
  %c8 = arith.constant 8 : index
  lacis.loop "i" %i to %n {
    lacis.loop "b" %b to %c8 {
      lacis.write %zero to %y[%i, %b] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{vectorize: loop 'i' does not run exactly 8 times; split it first}}
// expected-note @+1 {{asked for}}
func.func @unknown_size(%n: index) attributes {lacis.steps = [#lacis.vectorize<loop = "i", width = 8>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{vectorize: loop 'i' is marked already}}
// expected-note @+1 {{asked for}}
func.func @twice(%n: index) attributes {lacis.steps = [#lacis.parallel<loop = "i">, #lacis.vectorize<loop = "i", width = 8>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
