// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-test-formats

// A batch is of values alone: whole axes, above the one pattern that they share; its companions begin with it, too.

// expected-remark @below {{tile levels: 0; arrays: pos2 'i32' crd2 'i32'}}
// expected-remark @below {{by 'i': #lacis.format<(h, i, j) -> (h : batch, i : dense, j : compressed<unique=false>, link)>}}
// expected-remark @below {{by 'j': #lacis.format<(h, i, j) -> (h : batch, j : dense, i : compressed<unique=false>, link)>}}
// expected-remark @below {{by 'h': #lacis.format<(h, i, j) -> (h : batch, i : compressed<unique=false>, j : singleton, link)>}}
func.func private @heads(tensor<?x?x?xf32, #lacis.format<(h, i, j) -> (h : batch, i : dense, j : compressed)>>)
// -----
// expected-error @below {{'h : batch' must come first: the levels below it are the pattern that its values share}}
#a = #lacis.format<(h, i, j) -> (i : dense, h : batch, j : compressed)>
// -----
// expected-error @below {{'h floordiv 4 : batch' is of whole axes, neither of their blocks nor of what is bound to them}}
#a = #lacis.format<(h, i) -> (h floordiv 4 : batch, h mod 4 : dense, i : compressed)>
// -----
// expected-error @below {{'d : batch' is of whole axes, neither of their blocks nor of what is bound to them}}
#a = #lacis.format<(i, j) let d = j - i -> (d : batch, i : range)>
// -----
// expected-error @below {{'(h, i) : batch' is of several axes: write a level 'batch' for each of them}}
#a = #lacis.format<(h, i, j) -> ((h, i) : batch, j : compressed)>
// -----
// expected-error @below {{'h : batch' has no level below it, so its values share no pattern}}
#a = #lacis.format<(h) -> (h : batch)>
// -----
#one = #lacis.format<(h, i) -> (h : batch, i : packed<4>)>
#other = #lacis.format<(h, i) -> (h : dense, i : compressed)>
// expected-error @below {{part 'b' has values for another batch than part 'a': begin all parts with the same levels of kind 'batch'}}
#s = #lacis.sum<a = #one when fits, b = #other>
// -----
#one = #lacis.format<(h, i) -> (h : batch, i : compressed)>
// expected-error @below {{the rule of part 'a' looks at 'h', whose coordinates share one pattern}}
#s = #lacis.sum<a = #one when h lt 2, b = #one>
