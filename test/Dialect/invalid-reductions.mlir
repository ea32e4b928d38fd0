// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// A loop does with what it carries what it says.

func.func @other(%n: index, %x: f32) {
  // expected-error @below {{'reduce' of loop 'i' is 'max', which its body does not do with what it carries}}
  %0 = lacis.loop "i" %i to %n iter(%before = %x) -> (f32) {
    %next = arith.addf %before, %x : f32
    lacis.yield %next : f32
  } reduce<max>
  return
}

// -----

func.func @forgotten(%n: index, %x: f32) {
  // expected-error @below {{'reduce' of loop 'i' is 'add', which its body does not do with what it carries}}
  %0 = lacis.loop "i" %i to %n iter(%before = %x) -> (f32) {
    %next = arith.addf %x, %x : f32
    lacis.yield %next : f32
  } reduce<add>
  return
}

// -----

func.func @guard(%n: index, %x: f32, %on: i1) {
  // expected-error @below {{'reduce' of loop 'i' is 'add', which its body does not do with what it carries}}
  %0 = lacis.loop "i" %i to %n iter(%before = %x) -> (f32) {
    %next = scf.if %on -> (f32) {
      %added = arith.addf %before, %x : f32
      scf.yield %added : f32
    } else {
      scf.yield %x : f32
    }
    lacis.yield %next : f32
  } reduce<add>
  return
}

// -----

func.func @inner(%n: index, %x: f32) {
  // expected-error @below {{'reduce' of loop 'i' is 'add', which its body does not do with what it carries}}
  %0 = lacis.loop "i" %i to %n iter(%outer = %x) -> (f32) {
    %inner = lacis.loop "j" %j to %n iter(%before = %outer) -> (f32) {
      %next = arith.maximumf %before, %x : f32
      lacis.yield %next : f32
    }
    lacis.yield %inner : f32
  } reduce<add>
  return
}

// -----

func.func @nothing(%n: index) {
  // expected-error @below {{'reduce' is of a loop that carries values; loop 'i' carries none}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } reduce<add>
  return
}

// -----

func.func @word(%n: index, %x: f32) {
  %0 = lacis.loop "i" %i to %n iter(%before = %x) -> (f32) {
    lacis.yield %before : f32
  // expected-error @+2 {{to be one of: add, mul, max, min, or, and}}
  // expected-error @below {{failed to parse Lacis_ReductionAttr parameter 'value'}}
  } reduce<sub>
  return
}

// -----

// expected-error @below {{'lacis.reduce' is a '#lacis.reduction'; got "add"}}
func.func private @reduce() attributes {lacis.reduce = "add"}

// -----

// A result within what makes it: the reduction is looked for before anybody verifies that.
func.func @own(%n: index, %x: f32, %c: i1) {
  %0 = lacis.loop "i" %i to %n iter(%before = %x) -> (f32) {
    // expected-note @below {{operand defined here}}
    %next = scf.if %c -> (f32) {
      // expected-error @below {{operand #0 does not dominate this use}}
      scf.yield %next : f32
    } else {
      scf.yield %before : f32
    }
    lacis.yield %next : f32
  }
  return
}
