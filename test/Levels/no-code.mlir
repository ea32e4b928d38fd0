// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-test-levels

// Kinds that parse but have no code yet say so by name.

// expected-error @below {{level kind 'bitmap' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : bitmap>} { return }
// -----
// expected-error @below {{level kind 'var*delta' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : var*delta<8>>} { return }
// -----
// expected-error @below {{level kind 'structured' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : structured<2>>} { return }
// -----
// expected-error @below {{level kind 'range' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : range>} { return }
// -----
// expected-error @below {{level kind 'fixed*fn' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : fixed*fn<3>>} { return }
// -----
// expected-error @below {{level kind 'var2*crd' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : var2*crd>} { return }
// -----
// expected-error @below {{level kind 'batch' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : batch>} { return }
// -----
// expected-error @below {{level kind '@mine' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : @mine>} { return }
