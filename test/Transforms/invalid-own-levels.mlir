// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-form-tiles

// Marks of tiles on nests over the levels of a format itself, of which no tiles can be made.

// expected-error @+1 {{tiles: a tile has one loop over its rows and one over its columns}}
func.func @rows(%y: tensor<?xf32> {lacis.axes = ["i"], lacis.output}) {
  %c64 = arith.constant 64 : index
  lacis.loop "i" %i to %c64 {
    lacis.yield
  } tensorize<rows>
  return
}

// -----

func.func @stores(%w: tensor<?x?xbf16> {lacis.name = "w"}, %x: tensor<?x?xbf16> {lacis.name = "x"}, %y: tensor<?x?xf32> {lacis.name = "y", lacis.output}) {
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  lacis.loop "i1" %i to %c64 {
    lacis.loop "b1" %b to %c64 {
      %s = lacis.loop "j" %j to %c64 iter(%a = %zero) -> (f32) {
        %v = lacis.read %w[%i, %j] : tensor<?x?xbf16> -> bf16
        %e = lacis.read %x[%b, %j] : tensor<?x?xbf16> -> bf16
        %vw = arith.extf %v : bf16 to f32
        %ew = arith.extf %e : bf16 to f32
        %p = arith.mulf %vw, %ew : f32
        %n = arith.addf %a, %p : f32
        lacis.yield %n : f32
      } reduce<add>
      lacis.write %s to %y[%b, %i] : f32 to tensor<?x?xf32>
      // expected-error @+1 {{tiles: a tile has one sum, and stores what follows from it}}
      lacis.write %s to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    } tensorize<columns>
    lacis.yield
  } tensorize<rows>
  return
}

// -----

func.func @depth(%w: tensor<?x?xbf16> {lacis.name = "w"}, %x: tensor<?x?xbf16> {lacis.name = "x"}, %y: tensor<?x?xf32> {lacis.name = "y", lacis.output}) {
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  lacis.loop "i1" %i to %c64 {
    lacis.loop "b1" %b to %c64 {
      // expected-error @+1 {{tiles: no loop of the sum is tensorized}}
      %s = lacis.loop "j" %j to %c64 iter(%a = %zero) -> (f32) {
        %v = lacis.read %w[%i, %j] : tensor<?x?xbf16> -> bf16
        %e = lacis.read %x[%b, %j] : tensor<?x?xbf16> -> bf16
        %vw = arith.extf %v : bf16 to f32
        %ew = arith.extf %e : bf16 to f32
        %p = arith.mulf %vw, %ew : f32
        %n = arith.addf %a, %p : f32
        lacis.yield %n : f32
      } reduce<add>
      lacis.write %s to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    } tensorize<columns>
    lacis.yield
  } tensorize<rows>
  return
}

// -----

func.func @whole(%w: tensor<?x?xbf16> {lacis.name = "w"}, %x: tensor<?x?xbf16> {lacis.name = "x"}, %y: tensor<?x?xf32> {lacis.name = "y", lacis.output}) {
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  lacis.loop "i1" %i to %c64 {
    lacis.loop "b1" %b to %c64 {
      // expected-error @+1 {{tiles: all of the sum is one tile; split its loop}}
      %s = lacis.loop "j" %j to %c64 iter(%a = %zero) -> (f32) {
        %v = lacis.read %w[%i, %j] : tensor<?x?xbf16> -> bf16
        %e = lacis.read %x[%b, %j] : tensor<?x?xbf16> -> bf16
        %vw = arith.extf %v : bf16 to f32
        %ew = arith.extf %e : bf16 to f32
        %p = arith.mulf %vw, %ew : f32
        %n = arith.addf %a, %p : f32
        lacis.yield %n : f32
      } reduce<add> tensorize<depth>
      lacis.write %s to %y[%b, %i] : f32 to tensor<?x?xf32>
      lacis.yield
    } tensorize<columns>
    lacis.yield
  } tensorize<rows>
  return
}

// -----

func.func @between(%w: tensor<?x?xbf16> {lacis.name = "w"}, %x: tensor<?x?xbf16> {lacis.name = "x"}, %y: tensor<?x?xf32> {lacis.name = "y", lacis.output}) {
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  lacis.loop "i1" %i to %c64 {
    // expected-error @+1 {{tiles: this stands between the loops of a tile, which are one product}}
    lacis.loop "b0" %k to %c64 {
    lacis.loop "b1" %b to %c64 {
        %z = arith.constant 1.0 : f32
      lacis.yield
    } tensorize<columns>
    lacis.yield
    }
    lacis.yield
  } tensorize<rows>
  return
}
