// SPDX-License-Identifier: Apache-2.0
// DEFINE: %{steps} = not lacis-opt - -lacis-apply-steps=target=cuda 2>&1 | FileCheck %s
// RUN: sed 's/private/order/' %s | %{steps} --check-prefix=ORDER
// RUN: sed 's/addf/divf/' %s | %{steps} --check-prefix=COMBINER
// RUN: sed 's/#lacis.race/#lacis.unroll<loop = "k", factor = 2>, &/' %s | %{steps} --check-prefix=MARKED
// RUN: sed 's/#lacis.race<loop = "k"/#lacis.split<loop = "k", factor = 4>, #lacis.race<loop = "k1"/' %s | %{steps} --check-prefix=INNER
// RUN: sed 's/"k" %k to %m/"k" %k to %units/' %s | %{steps} --check-prefix=UNITS
// RUN: sed 's/"b" %b to %n/"b" %b to %units/' %s | %{steps} --check-prefix=COPIES
// RUN: sed 's/private/atomic/' %s | %{steps} --check-prefix=ATOMIC
// RUN: sed 's/private/segment/' %s | %{steps} --check-prefix=SEGMENT
// RUN: sed 's/#lacis.race<loop = "k", strategy = "private">/#lacis.bind<loop = "k", unit = "block.x">/' %s | %{steps} --check-prefix=BIND

// Loops that carry a sum which units cannot keep.
// ORDER: error: race: 'order' is for shares of entries, which leave parts of rows; 'private' would do
// COMBINER: error: race: the rounds of loop 'k' are not added up by one operation that has a neutral element; none would do
// MARKED: error: race: loop 'k' is marked already; none would do
// INNER: error: race: loop 'k1' is not the outermost that carries its sum; none would do
// UNITS: error: race: how many units loop 'k' has is not known before the launch; none would do
// COPIES: error: race: how large a copy for each unit of loop 'k' is, is not known before the launch; none would do
// ATOMIC: error: race: with 'atomic' the sum depends on which part arrives first, and only deterministic=False allows that; 'private' would do
// SEGMENT: error: race: 'segment' is for a group of shares of entries, which hold parts of rows; there are none here; 'private' would do
// BIND: error: bind: loop 'k' carries a sum; two units would race for it; only the lanes of a warp and the warps of a block bring one sum together; race with a strategy makes its iterations units: 'private' would do

func.func @sums(%x: tensor<?x?xf32> {lacis.name = "x"}, %y: tensor<?xf32>, %units: index)
    attributes {lacis.steps = [#lacis.race<loop = "k", strategy = "private">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    %sum = lacis.loop "k" %k to %m iter(%acc = %zero) -> (f32) {
      %v = lacis.read %x[%b, %k] : tensor<?x?xf32> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %sum to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
