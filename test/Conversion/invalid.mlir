// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-import-sparse-tensor -lacis-export-sparse-tensor

// What one side cannot say is refused, by name.

// expected-error @below {{level kind 'packed' has no counterpart in 'sparse_tensor'}}
func.func private @ell(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : packed<?>)>>)
// -----
// expected-error @below {{level kind 'compressed' with padding has no counterpart in 'sparse_tensor'}}
func.func private @padded(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed<pad=true>)>>)
// -----
// expected-error @below {{level kind '@mine' has no counterpart in 'sparse_tensor'}}
func.func private @mine(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : @mine)>>)
// -----
// expected-error @below {{the digits of #lacis.level<(d0, d1) : compressed> have no counterpart in 'sparse_tensor'}}
func.func private @fused(tensor<?x?xf32, #lacis.format<(i, j) -> ((i, j) : compressed)>>)
// -----
// expected-error @below {{the digits of #lacis.level<d0 floordiv 16 mod 4 : dense> have no counterpart in 'sparse_tensor'}}
func.func private @deep(tensor<?xf32, #lacis.format<(i) -> (i floordiv 64 : compressed, i floordiv 16 mod 4 : dense, i mod 16 : dense)>>)
// -----
// expected-error @below {{'sparse_tensor' has one width for 'pos' of all levels}}
func.func private @widths(tensor<?x?xf32, #lacis.format<(i, j) -> (i : compressed<pos=i64>, j : compressed)>>)
// -----
// expected-error @below {{bindings, 'layout' and 'multiset' have no counterpart in 'sparse_tensor'}}
func.func private @dia(tensor<?x?xf32, #lacis.format<(i, j) let d = j - i -> (d : compressed, i : range)>>)
// -----
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
// expected-error @below {{a sum has no counterpart in 'sparse_tensor': export its parts}}
func.func private @sum(tensor<?x?xf32, #lacis.sum<a = #ell when fits, b = #ell>>)
// -----
#aos = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : compressed(nonunique), d1 : singleton) }>
// expected-error @below {{interleaves its coordinates: add 'soa'}}
func.func private @aos(tensor<?x?xf32, #aos>)
// -----
#slice = #sparse_tensor.encoding<{ map = (d0 : #sparse_tensor<slice(0, 4, 1)>, d1 : #sparse_tensor<slice(0, 4, 2)>) -> (d0 : dense, d1 : compressed) }>
// expected-error @below {{a format has no slices and no explicit or implicit values}}
func.func private @slice(tensor<?x?xf32, #slice>)
// -----
#wide = #sparse_tensor.encoding<{ map = (d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, d10, d11, d12, d13, d14, d15, d16, d17, d18, d19, d20, d21, d22, d23, d24, d25, d26) ->
    (d0 : dense, d1 : dense, d2 : dense, d3 : dense, d4 : dense, d5 : dense, d6 : dense, d7 : dense, d8 : dense, d9 : dense, d10 : dense, d11 : dense, d12 : dense, d13 : dense, d14 : dense, d15 : dense, d16 : dense, d17 : dense, d18 : dense, d19 : dense, d20 : dense, d21 : dense, d22 : dense, d23 : dense, d24 : dense, d25 : dense, d26 : dense) }>
// expected-error @below {{a format has at most 26 axes here, not 27}}
func.func private @wide(tensor<?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?x?xf32, #wide>)
