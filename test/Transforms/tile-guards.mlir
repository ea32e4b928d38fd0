// SPDX-License-Identifier: Apache-2.0
// DEFINE: %{form} = not lacis-opt - -lacis-form-tiles 2>&1 | FileCheck %s
// RUN: lacis-opt %s -lacis-form-tiles | FileCheck %s
// RUN: sed 's/?x?x?xbf16/4x16x?xbf16/g; s/arith.muli %n, %m/arith.constant 64/' %s | lacis-opt - -lacis-form-tiles | FileCheck %s
// RUN: sed 's/slt, %at, %end/sle, %at, %end/' %s | %{form} --check-prefix=ROUNDS
// RUN: sed 's/slt, %at, %end/slt, %at, %n/' %s | %{form} --check-prefix=ROUNDS
// RUN: sed 's/slt, %at, %end/slt, %at, %c32/' %s | %{form} --check-prefix=ROUNDS
// RUN: sed 's/slt, %at, %end/slt, %at, %never/' %s | %{form} --check-prefix=ROUNDS
// RUN: sed 's/slt, %at, %end/slt, %i, %at/' %s | %{form} --check-prefix=ROUNDS
// RUN: sed 's/%g to %c1/%g to %c0/' %s | %{form} --check-prefix=NONE
// RUN: sed 's/tensor.dim %b, %c2/tensor.dim %b, %never/' %s | %{form} --check-prefix=PLACES
// RUN: sed 's/slt, %j, %columns/slt, %j, %rows/' %s | %{form} --check-prefix=PLACES
// RUN: sed 's/slt, %j, %columns/slt, %i, %j/' %s | %{form} --check-prefix=PLACES
// RUN: sed 's/slt, %j, %columns/slt, %j, %c32/' %s | %{form} --check-prefix=PLACES

// Where the axes end boxes have 0, and stores leave places out: nothing asks there. The depth is two axes, one after the
// other, which end where the outer one does. Another condition would be lost.
// CHECK-LABEL: @guarded
// CHECK:   lacis.mma
// ROUNDS: error: tiles: a tile adds the products of all its rounds; this condition leaves some out that are not behind the end of an axis
// NONE: error: tiles: loop 'g' is bound to 'warpgroup' and has no rounds
// PLACES: error: tiles: all of a tile is stored; this condition leaves places out that are not behind the end of an axis
func.func @guarded(%a: tensor<?x?x?xbf16> {lacis.name = "a", lacis.axes = ["n", "m", "i"], lacis.staged = "shared"},
                   %b: tensor<?x?x?xbf16> {lacis.name = "b", lacis.axes = ["n", "m", "j"], lacis.staged = "shared"},
                   %out: tensor<?x?xf32> {lacis.name = "out", lacis.axes = ["i", "j"]}) attributes {lacis.kernel} {
  %never = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %b, %c0 : tensor<?x?x?xbf16>
  %m = tensor.dim %a, %c1 : tensor<?x?x?xbf16>
  %rows = tensor.dim %a, %c2 : tensor<?x?x?xbf16>
  %columns = tensor.dim %b, %c2 : tensor<?x?x?xbf16>
  %end = arith.muli %n, %m : index
  %rounds = arith.ceildivui %end, %c64 : index
  lacis.loop "n" %w to %c1 {
    lacis.loop "g" %g to %c1 {
      lacis.loop "i" %i to %c64 {
        lacis.loop "j" %j to %c64 {
          %there = arith.cmpi slt, %j, %columns : index
          scf.if %there {
            %sum = lacis.loop "k0" %k0 to %rounds iter(%acc = %zero) -> (f32) {
              %more = lacis.loop "k1" %k1 to %c64 iter(%carry = %acc) -> (f32) {
                %begin = arith.muli %k0, %c64 : index
                %at = arith.addi %begin, %k1 : index
                %outer = arith.divui %at, %m : index
                %inner = arith.remui %at, %m : index
                %within = arith.cmpi slt, %at, %end : index
                %some = scf.if %within -> (f32) {
                  %left = lacis.read %a[%outer, %inner, %i] : tensor<?x?x?xbf16> -> bf16
                  %right = lacis.read %b[%outer, %inner, %j] : tensor<?x?x?xbf16> -> bf16
                  %one = arith.extf %left : bf16 to f32
                  %other = arith.extf %right : bf16 to f32
                  %product = arith.mulf %one, %other : f32
                  %next = arith.addf %carry, %product : f32
                  scf.yield %next : f32
                } else {
                  scf.yield %carry : f32
                }
                lacis.yield %some : f32
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
