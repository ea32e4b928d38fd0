// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-test-formats

// The companion of a format, by each axis: an index of the same slots; stored blocks stay whole.

// expected-remark @below {{tile levels: 0; arrays: pos1 'i32' crd1 'i32'}}
// expected-remark @below {{by 'i': #lacis.format<(i, j) -> (i : dense, j : compressed<unique=false>, link)>}}
// expected-remark @below {{by 'j': #lacis.format<(i, j) -> (j : dense, i : compressed<unique=false>, link)>}}
func.func private @csc(tensor<?x?xf32, #lacis.format<(i, j) -> (j : dense, i : compressed)>>)
// -----
// expected-remark @below {{tile levels: 2; arrays: pos1 'i32' crd1 'i32'}}
// expected-remark @below {{by 'i': #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : compressed<unique=false>, link, i mod 16 : dense, j mod 16 : dense)>}}
// expected-remark @below {{by 'j': #lacis.format<(i, j) -> (j floordiv 16 : dense, i floordiv 16 : compressed<unique=false>, link, i mod 16 : dense, j mod 16 : dense)>}}
func.func private @bcsc(tensor<?x?xf32, #lacis.format<(i, j) -> (j floordiv 16 : dense, i floordiv 16 : compressed, i mod 16 : dense, j mod 16 : dense)>>)
// -----
// expected-remark @below {{tile levels: 0; arrays: crd1 'i32' pos2 'i32' crd2 'i32' crd3 'i32'}}
// expected-remark @below {{by 'i': #lacis.format<(i, j) -> (i : dense, j : compressed<unique=false>, link)>}}
// expected-remark @below {{by 'j': #lacis.format<(i, j) -> (j : dense, i : compressed<unique=false>, link)>}}
func.func private @nest(tensor<?x?xf32, #lacis.format<(i, j) -> (i floordiv 16 : dense, j floordiv 16 : packed<?>, i mod 16 : compressed<unique=false>, j mod 16 : singleton)>>)
// -----
// expected-remark @below {{tile levels: 0; arrays: pos0 'i64' crd0 'i16' crd1 'i32' crd2 'i32'}}
// expected-remark @below {{by 'i': #lacis.format<(i, j, k) -> (i : dense, j : compressed<unique=false, pos=i64, crd=i64>, k : singleton<crd=i64>, link<pos=i64>)>}}
// expected-remark @below {{by 'j'}}
// expected-remark @below {{by 'k'}}
func.func private @coo3(tensor<?x?x?xf32, #lacis.format<(i, j, k) -> (i : compressed<unique=false, pos=i64, crd=i16>, j : singleton, k : singleton)>>)
// -----
// Coordinates that are stored in fewer bits have as few in a companion.
// expected-remark @below {{tile levels: 0; arrays: pos1 'i32' crd1 'i16'}}
// expected-remark @below {{by 'i': #lacis.format<(i, j) -> (i : dense, j : compressed<unique=false, crd=i16>, link)>}}
// expected-remark @below {{by 'j': #lacis.format<(i, j) -> (j : dense, i : compressed<unique=false>, link)>}}
func.func private @narrow(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : compressed<crd=i16>)>>)
// -----
// A dense level says in how many its own are listed.
// expected-remark @below {{tile levels: 0; arrays: pos1 'i32' crd1 'i16'}}
// expected-remark @below {{by 'i': #lacis.format<(i, j) -> (i : dense, j : compressed<unique=false, crd=i16>, link)>}}
// expected-remark @below {{by 'j': #lacis.format<(i, j) -> (j : dense, i : compressed<unique=false, crd=i8>, link)>}}
func.func private @rows(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense<crd=i8>, j : compressed<crd=i16>)>>)
// -----
// The block of rows has the only digit above the stored block: nothing is left to compress by it.
// expected-remark @below {{tile levels: 1; arrays: pos0 'i32' crd0 'i32'}}
func.func private @panels(tensor<?xf32, #lacis.format<(i) -> (i floordiv 16 : compressed, i mod 16 : dense)>>)
