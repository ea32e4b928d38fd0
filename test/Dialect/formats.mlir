// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | FileCheck %s
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

// Every row of the table of formats is read and written back as it stands.

// CHECK-LABEL: @csr(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed)>>)
func.func private @csr(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed)>>)
// CHECK-LABEL: @csc(tensor<?x?xf32, #lacis.format<(i, j) -> (j : dense, i : compressed)>>)
func.func private @csc(tensor<?x?xf32, #lacis.format<(i, j) -> (j : dense, i : compressed)>>)
// CHECK-LABEL: @dcsr(tensor<?x?xf32, #lacis.format<(i, j) -> (i : compressed, j : compressed)>>)
func.func private @dcsr(tensor<?x?xf32, #lacis.format<(i, j) -> (i : compressed, j : compressed)>>)
// CHECK-LABEL: @coo(tensor<?x?xf32, #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>>)
func.func private @coo(tensor<?x?xf32, #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>>)
// CHECK-LABEL: @ell(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : packed<?>)>>)
func.func private @ell(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : packed<?>)>>)

// CHECK-LABEL: @bsr
// CHECK-SAME:  (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
func.func private @bsr(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>>)
// CHECK-LABEL: @bcsc
// CHECK-SAME:  (j floordiv 16 : dense, i floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>
func.func private @bcsc(tensor<?x?xf32, #lacis.format<(i, j) -> (j floordiv 16 : dense, i floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>>)
// CHECK-LABEL: @blocked_ell
// CHECK-SAME:  (i floordiv 16 : dense, j floordiv 16 : packed<?>, i mod 16 : dense, j mod 16 : dense)>
func.func private @blocked_ell(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : packed<?>, i mod 16 : dense, j mod 16 : dense)>>)

// CHECK-LABEL: @nest
// CHECK-SAME:  (i floordiv 16 : dense, j floordiv 16 : packed<?>, i mod 16 : compressed<unique=false>, j mod 16 : singleton)>
func.func private @nest(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : packed<?>, i mod 16 : compressed<unique=false>, j mod 16 : singleton)>>)
// CHECK-LABEL: @fused
// CHECK-SAME:  (i floordiv 16 : dense, j floordiv 16 : packed<?>, (i mod 16, j mod 16) : compressed<crd=i16>)>
func.func private @fused(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : packed<?>, (i mod 16, j mod 16) : compressed<crd=i16>)>>)

// CHECK-LABEL: @sell
// CHECK-SAME:  (i, j) let r = rank(i by nnz within 128), s = slot(j in i) -> (r floordiv 32 : dense, s : ragged, r mod 32 : dense, j : singleton<pad=true>)>
func.func private @sell(tensor<?x?xf32, #lacis.format<(i, j) let r = rank(i by nnz within 128), s = slot(j in i) -> (r floordiv 32 : dense, s : ragged, r mod 32 : dense, j : singleton<pad=true>)>>)
// CHECK-LABEL: @dia
// CHECK-SAME:  (i, j) let d = j - i -> (d : compressed, i : range)>
func.func private @dia(tensor<?x?xf32, #lacis.format<(i, j) let d = j - i -> (d : compressed, i : range)>>)
// CHECK-LABEL: @antidiagonals
// CHECK-SAME:  (i, j) let d = i + j -> (d : compressed, i : range)>
func.func private @antidiagonals(tensor<?x?xf32, #lacis.format<(i, j) let d = i + j -> (d : compressed, i : range)>>)
// CHECK-LABEL: @bitmap
// CHECK-SAME:  (i floordiv 16 : dense, j floordiv 16 : compressed, (i mod 16, j mod 16) : bitmap)>
func.func private @bitmap(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed, (i mod 16, j mod 16) : bitmap)>>)
// CHECK-LABEL: @two_of_four
// CHECK-SAME:  (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)>
func.func private @two_of_four(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j floordiv 4 : dense, j mod 4 : structured<2>)>>)
// CHECK-LABEL: @by_columns
// CHECK-SAME:  (j : dense, i : compressed, link)>
func.func private @by_columns(tensor<?x?xf32, #lacis.format<(i, j) -> (j : dense, i : compressed, link)>>)

// CHECK-LABEL: @others
// CHECK-SAME:  (h, i, j) -> (h : batch, i : var2*crd<pos=i64>, j : fixed*delta<4, 8>), layout = "nz", multiset>
func.func private @others(tensor<?x?x?xf32, #lacis.format<(h, i, j) -> (h : batch, i : var2*crd<pos=i64>, j : fixed*delta<4, 8>), layout = "nz", multiset>>)
// CHECK-LABEL: @own
// CHECK-SAME:  (i : full*bitmap, j : @stripes)>
func.func private @own(tensor<?x?xf32, #lacis.format<(i, j) -> (i : full*bitmap, j : @stripes)>>)
// CHECK-LABEL: @three_deep
// CHECK-SAME:  (i floordiv 64 : dense, j : compressed, i floordiv 16 mod 4 : dense, i mod 16 : dense)>
func.func private @three_deep(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 64 : dense, j : compressed, i mod 64 floordiv 16 : dense, i mod 16 : dense)>>)
