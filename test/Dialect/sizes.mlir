// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// A size is a number, or an expression over numbers that the launch is given; what is 1 is left out of products, and
// conditions come first.
// CHECK:       lacis.sizes = [#lacis.size<64>, #lacis.size<arg 0>, #lacis.size<ceildiv(arg 0 + -1, 16) * 4>,
// CHECK-SAME:  #lacis.size<arg 1 in [33, ?]>, #lacis.size<(arg 1 in [0, 32]) * 4 * (arg 2 + 1)>, #lacis.size<arg 1 * arg 2 + 1>]
func.func private @sizes() attributes {lacis.sizes = [
  #lacis.size<64>, #lacis.size<1 * arg 0>, #lacis.size<ceildiv(arg 0 + -1, 16) * 4>, #lacis.size<(arg 1 in [33, ?])>,
  #lacis.size<4 * (arg 1 in [0, 32]) * (arg 2 + 1)>, #lacis.size<arg 1 * arg 2 + 1>]}

// -----

// expected-error @below {{size: divided by 0; divide by a number from 1 on}}
#none = #lacis.size<ceildiv(arg 0, 0)>

// -----

// expected-error @below {{size: a number from 0 on, not -4}}
#less = #lacis.size<-4>

// -----

// expected-error @below {{expected '('}}
#word = #lacis.size<rows>
