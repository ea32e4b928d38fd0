// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -verify-diagnostics -lacis-form-tiles

// The loop over the depth is tensorized, and has one of its own.

func.func @inside(%w: tensor<?x?xbf16> {lacis.name = "w"}, %x: tensor<?x?xbf16> {lacis.name = "x"}, %y: tensor<?x?xf32> {lacis.name = "y", lacis.output}) {
  %c64 = arith.constant 64 : index
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %size = tensor.dim %w, %c0 : tensor<?x?xbf16>
  lacis.loop "i1" %i to %c64 {
    lacis.loop "b1" %b to %c64 {
      %s = lacis.loop "j0" %j0 to %size iter(%a0 = %zero) -> (f32) {
        %t = lacis.loop "j10" %j10 to %c2 iter(%a1 = %a0) -> (f32) {
          // expected-error @+1 {{tiles: loop 'j11' stands inside of the one over the depth of a tile, which is the innermost of the sum}}
          %u = lacis.loop "j11" %j to %c64 iter(%a = %a1) -> (f32) {
            %v = lacis.read %w[%i, %j] : tensor<?x?xbf16> -> bf16
            %e = lacis.read %x[%b, %j] : tensor<?x?xbf16> -> bf16
            %vw = arith.extf %v : bf16 to f32
            %ew = arith.extf %e : bf16 to f32
            %p = arith.mulf %vw, %ew : f32
            %n = arith.addf %a, %p : f32
            lacis.yield %n : f32
          } reduce<add>
          lacis.yield %u : f32
        } reduce<add> tensorize<depth>
        lacis.yield %t : f32
      } reduce<add>
      lacis.write %s to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    } tensorize<columns>
    lacis.yield
  } tensorize<rows>
  return
}
