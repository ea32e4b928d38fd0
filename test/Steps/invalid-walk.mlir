// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps

// A walk is of an operand that has an order.

// expected-error @+2 {{walk: no operand named 'v'}}
// expected-note @+1 {{asked for}}
func.func @operand(%n: index) attributes {lacis.steps = [#lacis.walk<operand = "v", axes = ["i"]>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{walk: operand 'x' is dense, it has no order of its own}}
// expected-note @+1 {{asked for}}
func.func @dense(%x: tensor<?xf32> {lacis.name = "x"}, %n: index) attributes {lacis.steps = [#lacis.walk<operand = "x", axes = ["i"]>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
