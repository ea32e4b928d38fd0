// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-form-tiles | FileCheck %s

// A tile of 128 columns of which no more may be needed than 64: a consumer is compiled for both, and has half of the sums
// where the first is enough. Columns behind those of its version are stored by none.
// CHECK-LABEL: func.func @columns(
// CHECK:         } consumers 1
// CHECK:           %[[FITS:.*]] = arith.cmpi ule, %{{.*}}, %c1
// CHECK:           scf.if %[[FITS]] -> (!lacis.ring<2,
// CHECK:             lacis.mma {{.*}} into !lacis.acc<64x64xf32>
// CHECK:             lacis.store_tile {{.*}} : !lacis.acc<64x64xf32>
// CHECK-NOT:         lacis.store_tile
// CHECK:           } else {
// CHECK:             lacis.mma {{.*}} into !lacis.acc<64x128xf32>
// CHECK-COUNT-2:     lacis.store_tile {{.*}} : !lacis.acc<64x64xf32>
// CHECK-NOT:       lacis.version
func.func @columns(%a: tensor<?x?xbf16> {lacis.name = "a", lacis.staged = "shared"}, %b: tensor<?x?xbf16> {lacis.name = "b", lacis.staged = "shared"},
                   %out: tensor<?x?xf32> {lacis.name = "out"}) attributes {lacis.kernel} {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %b, %c1 : tensor<?x?xbf16>
  %k = tensor.dim %a, %c1 : tensor<?x?xbf16>
  %rounds = arith.ceildivui %k, %c64 : index
  %least = arith.ceildivui %n, %c64 : index
  lacis.loop "n" %w to %c1 {
    lacis.loop "g" %g to %c1 {
      %parts = lacis.version %least of [1, 2]
      lacis.loop "i" %i to %c64 {
        lacis.loop "j" %j to %c128 {
          %part = arith.divui %j, %c64 : index
          %isThere = arith.cmpi slt, %part, %parts : index
          scf.if %isThere {
            %sum = lacis.loop "k0" %k0 to %rounds iter(%s = %zero) -> (f32) {
              %more = lacis.loop "k1" %k1 to %c64 iter(%t = %s) -> (f32) {
                %begin = arith.muli %k0, %c64 : index
                %at = arith.addi %begin, %k1 : index
                %left = lacis.read %a[%i, %at] : tensor<?x?xbf16> -> bf16
                %right = lacis.read %b[%at, %j] : tensor<?x?xbf16> -> bf16
                %one = arith.extf %left : bf16 to f32
                %other = arith.extf %right : bf16 to f32
                %product = arith.mulf %one, %other : f32
                %next = arith.addf %t, %product : f32
                lacis.yield %next : f32
              } reduce<add> tensorize<depth>
              lacis.yield %more : f32
            } pipeline<2> reduce<add>
            lacis.write %sum to %out[%i, %j] : f32 to tensor<?x?xf32>
          }
          lacis.yield
        } tensorize<columns>
        lacis.yield
      } tensorize<rows>
      lacis.yield
    } bind<warpgroup>
    lacis.yield
  } bind<block.x>
  return
}
