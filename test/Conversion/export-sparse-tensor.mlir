// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -lacis-export-sparse-tensor | FileCheck %s
// RUN: lacis-opt %s -split-input-file -lacis-export-sparse-tensor -lacis-import-sparse-tensor | FileCheck %s --check-prefix=BACK

// Formats become upstream's encodings, and the way back gives the same format.

// CHECK: map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32
// BACK-LABEL: @csr
// BACK-SAME: (i : dense, j : compressed)>
func.func private @csr(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed)>>)
// -----
// CHECK: map = (d0, d1) -> (d1 : dense, d0 : compressed), posWidth = 64, crdWidth = 64
// BACK-LABEL: @csc
// BACK-SAME: (j : dense, i : compressed<pos=i64, crd=i64>)>
func.func private @csc(tensor<?x?xf32, #lacis.format<(i, j) -> (j : dense, i : compressed<pos=i64, crd=i64>)>>)
// -----
// CHECK: map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton(soa)), posWidth = 32, crdWidth = 32
// BACK-LABEL: @coo
// BACK-SAME: (i : compressed<unique=false>, j : singleton)>
func.func private @coo(tensor<?x?xf32, #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>>)
// -----
// CHECK: map = (d0, d1) -> (d0 floordiv 16 : dense, d1 floordiv 16 : compressed, d0 mod 16 : dense, d1 mod 16 : dense)
// BACK-LABEL: @bsr
// BACK-SAME: (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
func.func private @bsr(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>>)
// -----
// CHECK: d1 mod 4 : structured[2, 4]
// BACK-LABEL: @two_of_four
// BACK-SAME: (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)>
func.func private @two_of_four(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)>>)
// -----
// CHECK: d1 : loose_compressed(nonunique, nonordered)
// BACK-LABEL: @loose
// BACK-SAME: (i : dense, j : var2*crd<unique=false, ordered=false>)>
func.func private @loose(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : var2*crd<unique=false, ordered=false>)>>)
// -----
// CHECK: map = (d0, d1, d2) -> (d0 : batch, d1 : dense, d2 : compressed), posWidth = 32, crdWidth = 32
// BACK-LABEL: @heads
// BACK-SAME: (i : batch, j : dense, k : compressed)>
func.func private @heads(tensor<?x?x?xf32, #lacis.format<(h, i, j) -> (h : batch, i : dense, j : compressed)>>)
