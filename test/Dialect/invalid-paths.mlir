// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// A loop has letters for a name, and a path of what it belongs to; names with dots are how steps spell both.

func.func @dots(%n: index) {
  // expected-error @below {{'ell.j' is no name of a loop, which has letters alone; what it belongs to stands behind them, as in "j"<part "ell">}}
  lacis.loop "ell.j" %j to %n {
    lacis.yield
  }
  return
}

// -----

func.func @empty(%n: index) {
  // expected-error @below {{'' is no name of a loop, which has letters alone}}
  lacis.loop "" %j to %n {
    lacis.yield
  }
  return
}

// -----

func.func @kind(%n: index) {
  // expected-error @below {{'piece' is no kind of a step of a path; there are 'case', 'part', 'copy', 'rows', 'nest', 'statement' and 'phase'}}
  lacis.loop "j"<piece "ell"> %j to %n {
    lacis.yield
  }
  return
}

// -----

func.func @step(%n: index) {
  // expected-error @below {{part 'upto8.ell': a step of a path has a name without dots; what it belongs to is a step before it}}
  lacis.loop "j"<part "upto8.ell"> %j to %n {
    lacis.yield
  }
  return
}

// -----

func.func @rows(%n: index) {
  // expected-error @below {{rows 'i': a step behind says whose entries are walked in shares}}
  lacis.loop "j0"<rows "i"> %j to %n {
    lacis.yield
  }
  return
}

// -----

func.func @letters(%n: index) {
  // expected-error @below {{expected string}}
  lacis.loop %j to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @below {{a path has at least one step, as in '<part "ell">'}}
func.func private @none() attributes {path = #lacis.path<>}
