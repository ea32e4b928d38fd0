// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | FileCheck %s
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

#coo = #lacis.format<(i, j) -> (i : compressed<unique=false>, j : singleton)>
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<32>)>

// CHECK-LABEL: @hyb
// CHECK-SAME:  #lacis.sum<ell = #lacis.format<(i, j) -> (i : dense, j : packed<32>)> when fits, rest = #lacis.format<
func.func private @hyb(tensor<?x?xf32, #lacis.sum<ell = #ell when fits, rest = #coo>>)

// CHECK-LABEL: @rules
// CHECK-SAME:  when fits and slot(j in i) lt 8, b = {{.*}} when nnz(i floordiv 16, j) ge 4 and j floordiv 64 eq 0, c = #lacis.format<
func.func private @rules(tensor<?x?xf32, #lacis.sum<
  a = #ell when fits and slot(j in i) lt 8,
  b = #csr when nnz(i floordiv 16, j) ge 4 and j floordiv 64 eq 0,
  c = #coo>>)
