// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// CHECK-LABEL: func.func @marked(
// CHECK:         lacis.loop "i"
// CHECK:           lacis.loop "b"
// CHECK:         {vectorize = 8 : i64}
// CHECK:       {bind = "block.x"}
func.func @marked(%y: tensor<?x?xf32>, %n: index)
    attributes {lacis.steps = [#lacis.bind<"i", "block.x">, #lacis.vectorize<"b", 8>]} {
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

// expected-error @+1 {{vectorize: loop 'i' does not run exactly 8 times; split it first}}
func.func @unknown_size(%n: index) attributes {lacis.steps = [#lacis.vectorize<"i", 8>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+1 {{bind: no unit 'warps'; units are 'parallel', 'block.x', 'thread.x', 'warp', 'lane'}}
func.func @no_unit(%n: index) attributes {lacis.steps = [#lacis.bind<"i", "warps">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+1 {{jam: loop 'i' has no constant trip count; split it first}}
func.func @no_trip(%n: index) attributes {lacis.steps = [#lacis.jam<"i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+1 {{unroll: no loop named 'k'}}
func.func @no_name(%n: index) attributes {lacis.steps = [#lacis.unroll<"k", 4>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
