// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// Marks of loops that would make more code than anybody waits for, or none.

func.func @none(%n: index) {
  // expected-error @below {{'unroll' of loop 'i' is at least 1}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } unroll<0>
  return
}

// -----

func.func @jam(%n: index) {
  %c4 = arith.constant 4 : index
  // expected-error @below {{jam: loop 'i' must run exactly 1000 times}}
  lacis.loop "i" %i to %c4 {
    lacis.yield
  } jam<1000>
  return
}

// -----

func.func @lanes() {
  %c1024 = arith.constant 1024 : index
  // expected-error @below {{loop 'i' has 1024 lanes; a vector has at most 512}}
  lacis.loop "i" %i to %c1024 {
    lacis.yield
  } vectorize<1024>
  return
}

// -----

func.func @rounds(%n: index, %x: i1) {
  %c64 = arith.constant 64 : index
  lacis.loop "i" %i to %c64 {
    scf.if %x {
      // expected-error @below {{'unroll' and 'jam' of loop 'j' and of the loops around it put more than 1024 rounds side by side}}
      lacis.loop "j" %j to %n {
        lacis.yield
      } unroll<32>
    }
    lacis.yield
  } jam<64>
  return
}

// -----

func.func @side(%n: index) {
  // expected-error @below {{loop 'i' is a side of a tile, so it runs a constant number of times, at most 1024}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } tensorize<rows>
  return
}
