// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics

// Words and values that no mark of a loop has.

func.func @unit(%n: index) {
  lacis.loop "i" %i to %n {
    lacis.yield
  // expected-error @+2 {{to be one of: parallel, block.x, block.y, block.z, thread.x, thread.y, thread.z, threads, warp, lane, warpgroup}}
  // expected-error @+1 {{failed to parse Lacis_ParallelUnitAttr parameter 'value'}}
  } bind<blocks>
  return
}

// -----

func.func @number(%n: index) {
  lacis.loop "i" %i to %n {
    lacis.yield
  // expected-error @below {{expected integer value}}
  } jam<"four">
  return
}

// -----

func.func @lists(%n: index) {
  lacis.loop "i" %i to %n {
    lacis.yield
  // expected-error @below {{'raster', 'groups', 'within' and 'cut' of work lists are at least 1}}
  } balance<raster = 0, groups = 16>
  return
}

// -----

func.func @parts(%n: index) {
  lacis.loop "i" %i to %n {
    lacis.yield
  // expected-error @below {{'parts' of work lists are at least 2}}
  } balance<raster = 1, groups = 1, parts = 1>
  return
}

// -----

func.func @twice(%n: index) {
  lacis.loop "i" %i to %n {
    lacis.yield
  // expected-error @below {{'meets' is said twice}}
  } meets meets
  return
}

// -----

func.func @type(%n: index) {
  lacis.loop "i" %i to %n {
    lacis.yield
  // expected-error @below {{'bind' is a word behind the body, not in braces}}
  } {bind = "lane"}
  return
}

// -----

func.func @word(%n: index) {
  // expected-error @below {{has no mark 'lacis.meet'; there are 'balance', 'begins', 'bind'}}
  lacis.loop "i" %i to %n {
    lacis.yield
  } {lacis.meet}
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @positions(%w: tensor<?x?xf32, #csr>, %p: index) {
  // expected-error @below {{has no mark 'bind'; there are 'holds', 'pipeline', 'reduce', 'rolled', 'skewed', 'stages', 'sums', 'tiled', 'unroll'}}
  lacis.level_loop "j" %w[1] at %p (%q, %j) : tensor<?x?xf32, #csr> {
    lacis.yield
  } {bind = "lane"}
  return
}
