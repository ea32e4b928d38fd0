// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-import-sparse-tensor | FileCheck %s

// Upstream's encodings become formats; width 0 is the machine's.

#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
// CHECK-LABEL: @csr(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed)>>)
func.func private @csr(tensor<?x?xf32, #csr>)
// -----
#csc = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed(nonordered)) }>
// CHECK-LABEL: @csc(%{{.*}}: tensor<?x?xf32, #lacis.format<(i, j) -> (j : dense, i : compressed<ordered=false, pos=i64, crd=i64>)>>)
func.func @csc(%a: tensor<?x?xf32, #csc>) {
  return
}
// -----
#coo = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa)), posWidth = 32, crdWidth = 32 }>
// CHECK-LABEL: @coo(tensor<?x?xf32, #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>>)
func.func private @coo(tensor<?x?xf32, #coo>)
// -----
#bsr = #sparse_tensor.encoding<{
  map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense), posWidth = 32, crdWidth = 32 }>
// CHECK-LABEL: @bsr(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense)>>)
func.func private @bsr(tensor<?x?xf32, #bsr>)
// -----
#nm = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured[2, 4]) }>
// CHECK-LABEL: @nm(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)>>)
func.func private @nm(tensor<?x?xf32, #nm>)
