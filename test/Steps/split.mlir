// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// for b in n  -->  for b0 in ceil(n / 8): for b1 in 8: if b0 * 8 + b1 < n
// CHECK-LABEL: func.func @fill(
// CHECK:         %[[BLOCKS:.*]] = arith.ceildivui
// CHECK:         lacis.loop "b0" %[[B0:.*]] to %[[BLOCKS]]
// CHECK:           lacis.loop "b1" %[[B1:.*]] to %c8
// CHECK:             %[[B:.*]] = arith.addi
// CHECK:             %[[IN:.*]] = arith.cmpi slt, %[[B]],
// CHECK:             scf.if %[[IN]]
// CHECK:               lacis.write %{{.*}} to %{{.*}}[%[[B]]]
func.func @fill(%y: tensor<?xf32>) attributes {lacis.steps = [#lacis.split<loop = "b", factor = 8>]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  lacis.loop "b" %b to %n {
    lacis.write %zero to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{split: no loop named 'i'}}
// expected-note @+1 {{asked for}}
func.func @no_loop(%y: tensor<?xf32>, %n: index) attributes {lacis.steps = [#lacis.split<loop = "i", factor = 8>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{split: factor 0 of loop 'b' must be positive}}
// expected-note @+1 {{asked for}}
func.func @no_factor(%y: tensor<?xf32>, %n: index) attributes {lacis.steps = [#lacis.split<loop = "b", factor = 0>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{split: 2 loops are called 'b'; a step names one, so give them names of their own}}
// expected-note @+1 {{asked for}}
func.func @two_loops(%y: tensor<?xf32>, %n: index) attributes {lacis.steps = [#lacis.split<loop = "b", factor = 8>]} {
  lacis.loop "b" %b to %n {
    lacis.loop "b" %again to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}
