// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// Marks of loops that say nothing beside each other.

func.func @two() {
  %c4 = arith.constant 4 : index
  // expected-error @below {{loop 'i' has the marks 'bind' and 'jam'; it runs in one way}}
  lacis.loop "i" %i to %c4 {
    lacis.yield
  } jam<4> bind<lane>
  return
}

// -----

func.func @ahead(%n: index) {
  // expected-error @below {{loop 'i' has the marks 'bind' and 'pipeline'; it runs in one way}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } bind<block.x> pipeline<2>
  return
}

// -----

func.func @rounds(%n: index) {
  // expected-error @below {{loop 'i' has the marks 'bind' and 'unroll'; it runs in one way}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } bind<block.x> unroll<2>
  return
}

// -----

func.func @staged() {
  %c4 = arith.constant 4 : index
  // expected-error @below {{'stages': loop 'i' stays no loop, so it has no rounds in which operands are loaded}}
  lacis.loop "i" %i to %c4 {
    lacis.yield
  } vectorize<4> stages
  return
}

// -----

func.func @tf32() {
  %c4 = arith.constant 4 : index
  // expected-error @below {{'tf32' is of a loop that has 'tensorize', as loop 'i' has not}}
  lacis.loop "i" %i to %c4 {
    lacis.yield
  } mma<rows> tf32
  return
}

// -----

func.func @scan() {
  %c4 = arith.constant 4 : index
  // expected-error @below {{'scan' of loop 'i' is a sum over the lanes of a warp; it is bound to 'warp'}}
  lacis.loop "i" %i to %c4 {
    lacis.yield
  } bind<warp> scan
  return
}

// -----

func.func @race(%n: index) {
  // expected-error @below {{'race' is of a loop whose iterations meet in one element of the output; loop 'i' has neither 'meets' nor 'scan'}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } race<"order">
  return
}

// -----

func.func @strategy(%n: index) {
  // expected-error @below {{'race' of loop 'i': no strategy 'luck' has code; there are 'atomic'}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } meets race<"luck">
  return
}

// -----

func.func @sums(%n: index) {
  // expected-error @below {{the rounds that 'unroll' of loop 'i' puts side by side are no multiple of its 2 'sums'}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } sums<2> unroll<3>
  return
}

// -----

func.func @stages(%n: index) {
  // expected-error @below {{'pipeline' of loop 'i' is a number of stages, from 2 to 256}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } pipeline<1>
  return
}
