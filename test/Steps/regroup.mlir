// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#pairs = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed, i floordiv 64 mod 2 : bitmap, link,
                                  i mod 64 : dense, j mod 64 : dense)>

// CHECK-LABEL: func.func @pairs(
// CHECK-SAME:    lacis.regroup = #lacis.layout<format = <(i, j) -> (i floordiv 128 : dense
func.func @pairs(%w: tensor<?x?xbf16, #bsr> {lacis.name = "w"}, %n: index)
    attributes {lacis.steps = [#lacis.regroup<operand = "w", layout = #pairs, capacity = 2>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{regroup: no operand named 'v'}}
// expected-note @+1 {{asked for}}
func.func @unknown(%n: index) attributes {lacis.steps = [#lacis.regroup<operand = "v", layout = 3>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{regroup: operand 'x' is dense; relayout copies dense operands}}
// expected-note @+1 {{asked for}}
func.func @dense(%x: tensor<?x?xbf16> {lacis.name = "x"}, %n: index) attributes {lacis.steps = [#lacis.regroup<operand = "x", layout = 3>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{regroup: the layout of 'w' must be a format over its axes}}
// expected-note @+1 {{asked for}}
func.func @layout(%w: tensor<?x?xbf16, #csr> {lacis.name = "w"}, %n: index) attributes {lacis.steps = [#lacis.regroup<operand = "w", layout = 3>]} {
  lacis.loop "b" %b to %n {
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{regroup: a capacity of 0 tiles holds none}}
// expected-note @+1 {{asked for}}
func.func @capacity(%w: tensor<?x?xbf16, #csr> {lacis.name = "w"}, %n: index) attributes {lacis.steps = [#lacis.regroup<operand = "w", layout = #csr, capacity = 0>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

#heads = #lacis.format<(h, i, j) -> (h : batch, i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
// expected-note @below {{asked for #lacis.regroup<}}
// expected-error @below {{regroup: the layout of 'w' must be a format over its axes, without those of the batch}}
func.func @copies(%w: tensor<?x?x?xbf16, #heads> {lacis.name = "w"}, %n: index) attributes {lacis.steps = [#lacis.regroup<operand = "w", layout = #heads>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
