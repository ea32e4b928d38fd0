// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -verify-diagnostics -lacis-form-tiles

// Half of the rows would be stored where the condition has another answer for each half.
func.func @half_of_the_rows(%a: tensor<?x?xbf16> {lacis.name = "a", lacis.staged = "shared"}, %b: tensor<?x?xbf16> {lacis.name = "b", lacis.staged = "shared"},
                            %out: tensor<?x?xf32> {lacis.name = "out"}) attributes {lacis.kernel} {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %k = tensor.dim %a, %c1 : tensor<?x?xbf16>
  %rounds = arith.ceildivui %k, %c64 : index
  lacis.loop "n" %w to %c1 {
    lacis.loop "g" %g to %c1 {
      lacis.loop "i" %i to %c64 {
        lacis.loop "j" %j to %c64 {
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
          %half = arith.divui %i, %c32 : index
          %isWanted = arith.cmpi ult, %half, %k : index
          scf.if %isWanted {
            // expected-error@+1 {{tiles: a condition within a tile stands around what is stored of it, and a tile is stored whole, or block by block where its output has stored blocks}}
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
