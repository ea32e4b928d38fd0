// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps

// A form is one of an operand that has levels.

// expected-error @+2 {{own: no operand named 'v'}}
// expected-note @+1 {{asked for}}
func.func @operand(%n: index) attributes {lacis.steps = [#lacis.own<operand = "v", form = "list">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{own: operand 'x' is dense, its axes own what they are axes of}}
// expected-note @+1 {{asked for}}
func.func @dense(%x: tensor<?xf32> {lacis.name = "x"}, %n: index) attributes {lacis.steps = [#lacis.own<operand = "x", form = "list">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
