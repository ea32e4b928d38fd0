// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-test-levels

// Kinds that parse but have no code yet say so by name.

// expected-error @below {{level kind 'fixed*fn' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : fixed*fn<3>>} { return }
// -----
// expected-error @below {{level kind '@mine' has no code yet}}
func.func @f() attributes {lacis.level = #lacis.level<d0 : @mine>} { return }
