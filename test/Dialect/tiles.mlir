// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

// The operations of the tiles stage print as they are written.

#cost = #lacis.cost<bytes = 70000, products = 2048, clock = 1500, panel = 600, start = 4000, part = 1000, move = 80, segment = 8, kept = 16>
#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#slabs = #lacis.format<(i, j) -> (i floordiv 128 : dense, j floordiv 64 : compressed<unique=false>,
                                  (i floordiv 64 mod 2, j floordiv 16 mod 4) : bitmap, i mod 64 : dense, j mod 16 : dense)>
#lists = #lacis.format<(n, i, b) -> (n : dense, i : compressed<unique=false>, b : singleton)>

// CHECK-LABEL: func @derived(
func.func @derived(%w: tensor<?x?xbf16, #bsr>, %tokens: index, %p: index) -> (index, index, index, i32) {
  // CHECK: %[[SLABS:.*]] = lacis.regroup #lacis.layout<format = <{{.*}}>, capacity = 6> of %{{.*}} : tensor<?x?xbf16, #{{.*}}> to tensor<?x?xbf16, #{{.*}}>
  %slabs = lacis.regroup #lacis.layout<format = #slabs, capacity = 6> of %w : tensor<?x?xbf16, #bsr> to tensor<?x?xbf16, #slabs>
  // CHECK: lacis.balance #lacis.tile_schedule<columns = 256, swizzle_group = 4, cost = <{{.*}}>> of %[[SLABS]] over %{{.*}} : {{.*}} to tensor<?x?x?xi1, #{{.*}}>
  %lists = lacis.balance #lacis.tile_schedule<columns = 256, swizzle_group = 4, cost = #cost> of %slabs over %tokens : tensor<?x?xbf16, #slabs> to tensor<?x?x?xi1, #lists>
  // CHECK: lacis.origin %[[SLABS]] at %{{.*}} : tensor
  %group = lacis.origin %slabs at %p : tensor<?x?xbf16, #slabs>
  // CHECK: %{{.*}}, %{{.*}} = lacis.bounds %[[SLABS]][2] at %{{.*}} : tensor
  %lo, %hi = lacis.bounds %slabs[2] at %p : tensor<?x?xbf16, #slabs>
  // CHECK: lacis.presence %[[SLABS]][2] at %{{.*}} : tensor
  %bits = lacis.presence %slabs[2] at %p : tensor<?x?xbf16, #slabs>
  return %group, %lo, %hi, %bits : index, index, index, i32
}

// CHECK-LABEL: func @roles(
func.func @roles(%x: tensor<?x?xbf16>, %y: tensor<?x?xbf16>, %b: index, %zero: f32) {
  // CHECK: %[[RING:.*]] = lacis.ring : !lacis.ring<2, <64x64xbf16>, <3x64x16xbf16>>
  %ring = lacis.ring : !lacis.ring<2, <64x64xbf16>, <3x64x16xbf16>>
  // CHECK: lacis.roles producer {
  lacis.roles producer {
    // CHECK: %[[TILES:.*]]:2 = lacis.acquire %[[RING]]
    %a, %s = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>, <3x64x16xbf16>> -> !lacis.tile<64x64xbf16>, !lacis.tile<3x64x16xbf16>
    // CHECK: lacis.load_tile %{{.*}}[%{{.*}}, %{{.*}}] to %[[TILES]]#0 : tensor<?x?xbf16>[index, index] to !lacis.tile<64x64xbf16>
    lacis.load_tile %x[%b, %b] to %a : tensor<?x?xbf16>[index, index] to !lacis.tile<64x64xbf16>
    // CHECK: lacis.load_tile %{{.*}} to %[[TILES]]#1[%{{.*}} : index] : {{.*}} to !lacis.tile<3x64x16xbf16>
    lacis.load_tile %x[%b, %b] to %s[%b : index] : tensor<?x?xbf16>[index, index] to !lacis.tile<3x64x16xbf16>
    // CHECK: lacis.release %[[RING]] : !lacis.ring
    %next = lacis.release %ring : !lacis.ring<2, <64x64xbf16>, <3x64x16xbf16>>
    lacis.yield
  // CHECK: } consumers 3 (%[[C:.*]]: index) {
  } consumers 3 (%c : index) {
    // CHECK: %[[ACC:.*]] = lacis.splat %{{.*}} : f32 to !lacis.acc<64x64xf32>
    %acc = lacis.splat %zero : f32 to !lacis.acc<64x64xf32>
    %a, %s = lacis.acquire %ring : !lacis.ring<2, <64x64xbf16>, <3x64x16xbf16>> -> !lacis.tile<64x64xbf16>, !lacis.tile<3x64x16xbf16>
    %i = arith.constant 5 : i32
    // CHECK: lacis.mma %{{.*}}[%[[C]] : index] present %{{.*}}, %{{.*}} into %[[ACC]] : {{.*}} into !lacis.acc<64x64xf32>
    %one = lacis.mma %s[%c : index] present %i, %a into %acc : !lacis.tile<3x64x16xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
    // CHECK: lacis.mma %{{.*}}, %{{.*}} into %{{.*}} : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into
    %two = lacis.mma %a, %a into %one : !lacis.tile<64x64xbf16>, !lacis.tile<64x64xbf16> into !lacis.acc<64x64xf32>
    // CHECK: lacis.complete %{{.*}} : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
    %done = lacis.complete %two : !lacis.acc<64x64xf32> -> !lacis.acc<64x64xf32>
    // CHECK: %[[MAX:.*]] = lacis.reduce_rows "max" %{{.*}} : !lacis.acc<64x64xf32> -> !lacis.acc<64x1xf32>
    %max = lacis.reduce_rows "max" %done : !lacis.acc<64x64xf32> -> !lacis.acc<64x1xf32>
    // CHECK: lacis.map %{{.*}}, %[[MAX]] {
    %low = lacis.map %done, %max {
    ^bb0(%e: f32, %m: f32):
      %d = arith.subf %e, %m : f32
      lacis.yield %d : f32
    } : !lacis.acc<64x64xf32>, !lacis.acc<64x1xf32> -> !lacis.acc<64x64xf32>
    // CHECK: lacis.store_tile %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] transposed : !lacis.acc<64x64xf32> to tensor<?x?xbf16>[index, index]
    lacis.store_tile %low to %y[%b, %b] transposed : !lacis.acc<64x64xf32> to tensor<?x?xbf16>[index, index]
    lacis.yield
  }
  return
}
