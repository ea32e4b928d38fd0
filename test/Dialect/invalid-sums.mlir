// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// What a sum refuses.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @below {{part 'a' needs a rule, for instance 'when fits'; only the last takes the rest}}
#s = #lacis.sum<a = #csr, b = #csr>
// -----
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
// expected-error @below {{the last part 'a' takes what is left: leave its rule out}}
#s = #lacis.sum<a = #ell when fits>
// -----
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @below {{part 'a' has room for every entry, so 'fits' says nothing: put it last, or use a level with a width such as 'packed<32>'}}
#s = #lacis.sum<a = #csr when fits, b = #csr>
// -----
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#csf = #lacis.format<(i, j, k) -> (i : dense, j : compressed, k : compressed)>
// expected-error @below {{part 'b' has 3 axes, part 'a' has 2}}
#s = #lacis.sum<a = #ell when fits, b = #csf>
// -----
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#other = #lacis.format<(r, c) -> (r : dense, c : compressed)>
// expected-error @below {{part 'b' names its axes otherwise than part 'a': use the same names in the same order}}
#s = #lacis.sum<a = #ell when fits, b = #other>
// -----
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
// expected-error @below {{part 'a' is there twice}}
#s = #lacis.sum<a = #ell when fits, a = #ell>
// -----
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
// expected-error @below {{expected 'lt', 'ge' or 'eq'}}
#s = #lacis.sum<a = #ell when nnz(i) 4, b = #ell>
// -----
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
// expected-error @below {{no axis named 'k'; the names here are 'i', 'j'}}
#s = #lacis.sum<a = #ell when nnz(k) lt 4, b = #ell>
// -----
#ell = #lacis.format<(i, j) -> (i : dense, j : packed<4>)>
#sum = #lacis.sum<a = #ell when fits, b = #ell>
// expected-error @below {{the format has 2 axes, the tensor has rank 1}}
func.func private @rank(tensor<?xf32, #sum>)
// -----
// expected-error @below {{a sum needs at least one part}}
#s = #lacis.sum<>
// -----
// expected-error @below {{a rule is written inside '#lacis.sum'}}
#s = #lacis.compare<fits>
