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

// expected-error @+2 {{stage: no place 'cache'; tiles lie in 'shared'}}
// expected-note @+1 {{asked for}}
func.func @place(%x: tensor<?xbf16> {lacis.name = "x"}, %n: index) attributes {lacis.steps = [#lacis.stage<operand = "x", place = "cache">]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}
