// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-hopper
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-ampere
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-lower-tiles-plain

// Roles that are lowered too early, and places that no lowering can follow to their ring.

func.func @levels(%n: index) attributes {lacis.gpu_kernel} {
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>>
  lacis.roles producer {
    // expected-error @+1 {{tiles: 'lacis.loop' stands before roles are lowered: lower the levels first}}
    %end = lacis.loop "n" %i to %n iter(%place = %ring) -> (!lacis.ring<2, <64x64xbf16>>) {
      %next = lacis.release %place : !lacis.ring<2, <64x64xbf16>>
      lacis.yield %next : !lacis.ring<2, <64x64xbf16>>
    }
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}

// -----

func.func @argument(%ring: !lacis.ring<2, <64x64xbf16>>) attributes {lacis.gpu_kernel} {
  lacis.roles producer {
    // expected-error @+1 {{tiles: a place comes from 'lacis.ring' by way of loops, branches, 'lacis.release', 'lacis.advance' and 'lacis.complete' alone}}
    %t = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>> -> !lacis.tile<64x64xbf16>
    lacis.yield
  } consumers 1 (%c : i32) {
    lacis.yield
  }
  return
}
