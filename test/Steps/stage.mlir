// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

// CHECK-LABEL: func.func @shared(
// CHECK-SAME:    lacis.staged = "shared"
func.func @shared(%x: tensor<?x?xbf16> {lacis.name = "x"}, %n: index)
    attributes {lacis.steps = [#lacis.stage<operand = "x", place = "shared">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{stage: no operand named 'y'}}
// expected-note @+1 {{asked for}}
func.func @unknown(%n: index) attributes {lacis.steps = [#lacis.stage<operand = "y", place = "shared">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{stage: 'y' is the output; tiles of operands are loaded}}
// expected-note @+1 {{asked for}}
func.func @output(%n: index, %y: tensor<?xbf16> {lacis.name = "y", lacis.output}) attributes {lacis.steps = [#lacis.stage<operand = "y", place = "shared">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{stage: no place 'cache'; tiles lie in 'shared', single elements in a 'register'}}
// expected-note @+1 {{asked for}}
func.func @place(%x: tensor<?xbf16> {lacis.name = "x"}, %n: index) attributes {lacis.steps = [#lacis.stage<operand = "x", place = "cache">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// In the rounds of a loop: what is read there is marked.
// CHECK-LABEL: func.func @rounds(
// CHECK:         lacis.loop "k0"
// CHECK:           lacis.read %arg0[%{{.*}}] staged<"k0">
// CHECK:         } reduce<add> stages
func.func @rounds(%x: tensor<?xf32> {lacis.name = "x"}, %y: tensor<?xf32>)
    attributes {lacis.steps = [#lacis.split<loop = "k", factor = 32>, #lacis.stage<operand = "x", place = "shared", loop = "k0">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  lacis.loop "b" %b to %n {
    %s = lacis.loop "k" %k to %m iter(%acc = %zero) -> (f32) {
      %v = lacis.read %x[%k] : tensor<?xf32> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{stage: nothing in loop "b" reads 'x'}}
// expected-note @+1 {{asked for}}
func.func @unread(%x: tensor<?xf32> {lacis.name = "x"}, %n: index) attributes {lacis.steps = [#lacis.stage<operand = "x", place = "shared", loop = "b">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{stage: a register is loaded in the rounds of a loop; name it}}
// expected-note @+1 {{asked for}}
func.func @register(%x: tensor<?xf32> {lacis.name = "x"}, %n: index) attributes {lacis.steps = [#lacis.stage<operand = "x", place = "register">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{stage: loop "b1" stays no loop, so it has no rounds}}
// expected-note @+1 {{asked for}}
func.func @no_rounds(%x: tensor<?xf32> {lacis.name = "x"}, %n: index) attributes {lacis.steps = [#lacis.split<loop = "b", factor = 4>, #lacis.vectorize<loop = "b1", width = 4>, #lacis.stage<operand = "x", place = "shared", loop = "b1">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}
