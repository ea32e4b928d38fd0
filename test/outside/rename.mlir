// SPDX-License-Identifier: Apache-2.0
// RUN: %outside lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// A step from outside is applied like any other.
// CHECK: lacis.loop "row"
func.func @rename(%n: index) attributes {lacis.steps = [#lacis.rename<loop = "i", name = "row">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{rename: no loop named 'k'}}
// expected-note @+1 {{asked for #lacis.rename<loop = "k", name = "row">; loops here are 'i'}}
func.func @no_name(%n: index) attributes {lacis.steps = [#lacis.rename<loop = "k", name = "row">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
