// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
#t = #lacis.format<(l0, l1) -> (l0 : dense, l1 : dense)>
!x = tensor<?x64xbf16>
!t = tensor<?x?xf32, #t>

// Products of what a round made, and of an operand that it reads once, are complete in the next round.
// CHECK-LABEL: func.func @attend(
// CHECK:         lacis.level_loop "j0"
// CHECK:         } rolled skewed tiled
func.func @attend(%p: tensor<?x?xi1, #bsr>, %q: !x, %k: !x, %v: !x, %n: index)
    attributes {lacis.steps = [#lacis.tensorize<loops = ["j0"]>, #lacis.skew<loop = "j0">]} {
  %c64 = arith.constant 64 : index  %zero = arith.constant 0.0 : f32
  lacis.loop "i0" %i0 to %n {
    %s = lacis.workspace(%c64, %c64) place<private> : !t
    %o = lacis.workspace(%c64, %c64) place<private> : !t
    lacis.loop "i1"<phase "first"> %i1 to %c64 {
      lacis.loop "e"<phase "first"> %e to %c64 {
        lacis.write %zero to %o[%i1, %e] : f32 to !t
        lacis.yield
      }
      lacis.yield
    }
    lacis.level_loop "j0" %p[1] at %i0 (%position, %j0) : tensor<?x?xi1, #bsr> {
      %rows = arith.muli %i0, %c64 : index  %columns = arith.muli %j0, %c64 : index
      lacis.loop "i1"<statement "s"> %i1 to %c64 {
        lacis.loop "j1"<statement "s"> %j1 to %c64 {
          %i = arith.addi %rows, %i1 : index  %j = arith.addi %columns, %j1 : index
          %sum = lacis.loop "d" %d to %c64 iter(%c = %zero) -> (f32) {
            %a = lacis.read %q[%i, %d] : !x -> bf16  %b = lacis.read %k[%j, %d] : !x -> bf16
            %f = arith.extf %a : bf16 to f32  %g = arith.extf %b : bf16 to f32
            %m = arith.mulf %f, %g : f32  %r = arith.addf %c, %m : f32
            lacis.yield %r : f32
          } reduce<add>
          lacis.write %sum to %s[%i1, %j1] : f32 to !t
          lacis.yield
        }
        lacis.yield
      }
      lacis.loop "i1"<statement "o"> %i1 to %c64 {
        lacis.loop "e"<statement "o"> %e to %c64 {
          %before = lacis.read %o[%i1, %e] : !t -> f32
          %sum = lacis.loop "j1"<statement "o"> %j1 to %c64 iter(%c = %before) -> (f32) {
            %j = arith.addi %columns, %j1 : index
            %a = lacis.read %s[%i1, %j1] : !t -> f32  %b = lacis.read %v[%j, %e] : !x -> bf16
            %g = arith.extf %b : bf16 to f32
            %m = arith.mulf %a, %g : f32  %r = arith.addf %c, %m : f32
            lacis.yield %r : f32
          } reduce<add>
          lacis.write %sum to %o[%i1, %e] : f32 to !t
          lacis.yield
        }
        lacis.yield
      }
      lacis.yield
    } rolled
    lacis.yield
  }
  return
}

// -----

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>

// With no rounds between them nothing is marked.
// CHECK-LABEL: func.func @own_round(
// CHECK:         } rolled tiled
func.func @own_round(%p: tensor<?x?xi1, #bsr>, %n: index)
    attributes {lacis.steps = [#lacis.tensorize<loops = ["j0"]>, #lacis.skew<loop = "j0", rounds = 0>]} {
  lacis.loop "i0" %i0 to %n {
    lacis.level_loop "j0" %p[1] at %i0 (%position, %j0) : tensor<?x?xi1, #bsr> {
      lacis.yield
    } rolled
    lacis.yield
  }
  return
}
