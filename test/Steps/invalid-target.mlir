// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -verify-diagnostics -lacis-apply-steps=target=tpu

// expected-error @+1 {{no default schedule for target 'tpu'}}
func.func @target(%n: index) {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
