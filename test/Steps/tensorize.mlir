// SPDX-License-Identifier: Apache-2.0
// DEFINE: %{none} = not lacis-opt - -split-input-file -lacis-apply-steps=target=cuda 2>&1 | FileCheck %s
// RUN: sed 's/arith.mulf/arith.divf/' %s | %{none} --check-prefix=FACTORS
// RUN: sed 's/"b", "j"/"i", "j"/' %s | %{none} --check-prefix=LETTERS
// FACTORS: error: tensorize: the nest is no product of tiles: it does not sum products of a stored and a dense element
// LETTERS: error: tensorize: the nest is no product of tiles: it is no product of two matrices, of which one has a format
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

#bsr = #lacis.format<(i, j) -> (i floordiv 64 : dense, j floordiv 64 : compressed, i mod 64 : dense, j mod 64 : dense)>
// CHECK-LABEL: func.func @tile(
// CHECK:         lacis.loop "b1"
// CHECK:           lacis.loop "j1"
// CHECK:           tensorize<depth>
// CHECK:         tensorize<columns>
// CHECK:         tensorize<rows>
func.func @tile(%w: tensor<?x?xbf16, #bsr> {lacis.axes = ["i", "j"], lacis.name = "w"},
                %x: tensor<?x?xbf16> {lacis.axes = ["b", "j"], lacis.name = "x"}, %n: index,
                %y: tensor<?x?xf32> {lacis.axes = ["b", "i"], lacis.name = "y", lacis.output})
    attributes {lacis.steps = [#lacis.tensorize<loops = ["i1", "b1", "j1"]>]} {
  %zero = arith.constant 0.0 : f32
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  lacis.loop "i0" %i0 to %n {
    lacis.loop "i1" %i1 to %c64 {
      lacis.loop "b1" %b1 to %c256 {
        %sum = lacis.level_loop "j0" %w[1] at %i0 (%p, %j0) iter(%a = %zero) -> (f32) : tensor<?x?xbf16, #bsr> {
          %part = lacis.loop "j1" %j1 to %c64 iter(%c = %a) -> (f32) {
            %v = lacis.value %w at %p : tensor<?x?xbf16, #bsr> -> bf16
            %r = lacis.read %x[%b1, %j1] : tensor<?x?xbf16> -> bf16
            %vw = arith.extf %v : bf16 to f32
            %rw = arith.extf %r : bf16 to f32
            %product = arith.mulf %vw, %rw : f32
            %more = arith.addf %c, %product : f32
            lacis.yield %more : f32
          }
          lacis.yield %part : f32
        }
        lacis.write %sum to %y[%b1, %i1] : f32 to tensor<?x?xf32>
        lacis.yield
      }
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{tensorize: the nest is no product of tiles: it has not one loop over the positions of a level, under an output of its own}}
// expected-note @+1 {{asked for}}
func.func @no_product(%n: index) attributes {lacis.steps = [#lacis.tensorize<loops = ["i"]>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{tensorize: no kind "wmma"; there are 'mma', of one warp, and 'tf32', of float32 in 10 bits of the mantissa}}
// expected-note @+1 {{asked for}}
func.func @kind(%n: index) attributes {lacis.steps = [#lacis.tensorize<loops = ["i"], kind = "wmma">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{tensorize: loop 'i' has no constant trip count; split it first}}
// expected-note @+1 {{asked for}}
func.func @trip(%n: index) attributes {lacis.steps = [#lacis.tensorize<loops = ["i"], kind = "mma">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}
