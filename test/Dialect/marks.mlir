// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | FileCheck %s
// RUN: lacis-opt %s -mlir-print-op-generic | lacis-opt | FileCheck %s
// RUN: lacis-opt %s -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

// Marks of loops stand behind the body, in the order of the alphabet; their values are attributes.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>

// CHECK-LABEL: func.func @loops(
func.func @loops(%n: index) {
  %c4 = arith.constant 4 : index
  // CHECK: lacis.loop "a"
  // CHECK: } bind<block.x> meets race<"order">{{$}}
  lacis.loop "a" %a to %n {
    lacis.yield
  } meets race<"order"> bind<block.x>
  // CHECK: lacis.loop "b"
  // CHECK: } pipeline<3> sums<2> unroll<4>{{$}}
  lacis.loop "b" %b to %n {
    lacis.yield
  } unroll<4> sums<2> pipeline<3>
  // CHECK: lacis.loop "c"
  // CHECK: } tensorize<rows> tf32{{$}}
  lacis.loop "c" %c to %c4 {
    lacis.yield
  } tensorize<rows> tf32
  // CHECK: lacis.loop "d"
  // CHECK: } mma<depth>{{$}}
  lacis.loop "d" %d to %c4 {
    lacis.yield
  } mma<depth>
  // CHECK: lacis.loop "e"
  // CHECK: } balance<raster = 4, groups = 16, cut = 8>{{$}}
  lacis.loop "e" %e to %n {
    lacis.yield
  } balance<raster = 4, groups = 16, cut = 8>
  // CHECK: lacis.loop "f"
  // CHECK: } bind<lane> race<"segment"> scan{{$}}
  lacis.loop "f" %f to %c4 {
    lacis.yield
  } race<"segment"> scan bind<lane>
  // CHECK: lacis.loop "g"
  // CHECK: } holds stages{{$}}
  lacis.loop "g" %g to %n {
    lacis.yield
  } holds stages
  // CHECK: lacis.loop "h"
  // CHECK: } jam<4>{{$}}
  lacis.loop "h" %h to %c4 {
    lacis.yield
  } jam<4>
  // CHECK: lacis.loop "i"
  // CHECK: } vectorize<4>{{$}}
  lacis.loop "i" %i to %c4 {
    lacis.yield
  } vectorize<4>
  // CHECK: lacis.loop "j"
  // CHECK: } begins finishes follows unlisted{{$}}
  lacis.loop "j" %j to %n {
    lacis.yield
  } unlisted follows finishes begins
  // CHECK: lacis.loop "k"
  // CHECK: } stages {outside.mark}{{$}}
  lacis.loop "k" %k to %n {
    lacis.yield
  } stages {outside.mark}
  // GENERIC: bind = #lacis.unit<block.x>, {{.*}}letters = "a", {{.*}}race = "order"
  // GENERIC: letters = "c", {{.*}}tensorize = #lacis.side<rows>
  // GENERIC: balance = #lacis.work_lists<raster = 4, groups = 16, cut = 8>
  return
}

// CHECK-LABEL: func.func @positions(
func.func @positions(%w: tensor<?x?xf32, #csr>, %p: index) {
  // CHECK: lacis.level_loop "j"
  // CHECK: } rolled unroll<2>{{$}}
  lacis.level_loop "j" %w[1] at %p (%q, %j) : tensor<?x?xf32, #csr> {
    lacis.yield
  } unroll<2> rolled
  return
}
