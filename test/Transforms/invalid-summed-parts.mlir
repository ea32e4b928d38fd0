// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-form-tiles | FileCheck %s
// RUN: sed 's/iter(%carry = %acc)/iter(%carry = %before)/' %s | not lacis-opt - -lacis-form-tiles 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: sed 's/arith.extf %left/arith.extf %right/' %s | not lacis-opt - -lacis-form-tiles 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/mulf %one, /mulf %first, /' %s | lacis-opt - -lacis-form-tiles | FileCheck %s --check-prefixes=MAPPED,CHECK

// A tile is one product. What a round adds before that would be lost. What is refused later has made half of its tiles,
// which still take numbers of the nest.
// MAPPED:  lacis.map
// MAPPED:    arith.cmpi slt, %{{.*}}, %c32
// MAPPED:    arith.select
// CHECK:   lacis.mma
// OTHER: error: tiles: 'k1' is no statement of a tile
// REFUSED: error: tiles: a round of a tile's sum adds one product or number, and no other before it
func.func @half_of_the_depth(%a: tensor<?x?xbf16> {lacis.name = "a", lacis.axes = ["i", "k"], lacis.staged = "shared"},
                             %b: tensor<?x?xbf16> {lacis.name = "b", lacis.axes = ["k", "j"], lacis.staged = "shared"},
                             %out: tensor<?x?xf32> {lacis.name = "out", lacis.axes = ["i", "j"]}) attributes {lacis.kernel} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %bias = arith.constant 3.0 : f32
  %k = tensor.dim %a, %c1 : tensor<?x?xbf16>
  %rounds = arith.ceildivui %k, %c64 : index
  lacis.loop "n" %w to %c1 {
    lacis.loop "g" %g to %c1 {
      lacis.loop "i" %i to %c64 {
        lacis.loop "j" %j to %c64 {
          %sum = lacis.loop "k0" %k0 to %rounds iter(%acc = %zero) -> (f32) {
            %before = arith.addf %acc, %bias : f32
            %more = lacis.loop "k1" %k1 to %c64 iter(%carry = %acc) -> (f32) {
              %begin = arith.muli %k0, %c64 : index
              %at = arith.addi %begin, %k1 : index
              %left = lacis.read %a[%i, %at] : tensor<?x?xbf16> -> bf16
              %right = lacis.read %b[%at, %j] : tensor<?x?xbf16> -> bf16
              %one = arith.extf %left : bf16 to f32
              %other = arith.extf %right : bf16 to f32
              %isFirst = arith.cmpi slt, %k1, %c32 : index
              %first = arith.select %isFirst, %one, %zero : f32
              %product = arith.mulf %one, %other : f32
              %next = arith.addf %carry, %product : f32
              lacis.yield %next : f32
            } reduce<add> tensorize<depth>
            lacis.yield %more : f32
          } pipeline<2> reduce<add>
          lacis.write %sum to %out[%i, %j] : f32 to tensor<?x?xf32>
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
