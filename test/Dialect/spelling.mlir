// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | FileCheck %s

// Two spellings of one level are one attribute: the alias is printed, defaults are left out.

#csr = #lacis.format<(i, j) -> (i : full*implicit, j : var*crd<unique=true, ordered=true, pad=false, pos=i32, crd=i32>)>
#ell = #lacis.format<(i, j) -> (i : full, j : packed<pad=true>)>
#exact = #lacis.format<(i, j) -> (i : full, j : fixed*crd<4, pad=false>)>
#ragged = #lacis.format<(i, j) -> (i : dense, j : var)>

// CHECK-LABEL: @spelling
// CHECK-SAME:  (i : dense, j : compressed)>
// CHECK-SAME:  (i : dense, j : packed<?>)>
// CHECK-SAME:  (i : dense, j : packed<4, pad=false>)>
// CHECK-SAME:  (i : dense, j : ragged)>
func.func private @spelling(tensor<?x?xf32, #csr>, tensor<?x?xf32, #ell>, tensor<?x?xf32, #exact>, tensor<?x?xf32, #ragged>)

// Levels, kinds and patterns stand alone, too.
// CHECK-LABEL: @alone
// CHECK-SAME:  block = #lacis.level<(d0 floordiv 16, d1 floordiv 16) : compressed<unique=false>>
// CHECK-SAME:  extent = #lacis.var<pos=i64>
// CHECK-SAME:  link = #lacis.level<link>
// CHECK-SAME:  user = #lacis.kind<@k>
func.func private @alone() attributes {
  block = #lacis.level<(d0 floordiv 16, d1 floordiv 16) : compressed<unique=false>>,
  extent = #lacis.var<pos=i64>, link = #lacis.level<link>, user = #lacis.kind<@k>}

// CHECK-LABEL: @pattern(!lacis.pattern<?x64, #lacis.format<(i, j) -> (i : dense, j : compressed)>>)
func.func private @pattern(!lacis.pattern<?x64, #csr>)
