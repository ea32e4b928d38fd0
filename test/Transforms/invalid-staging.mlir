// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-stage-operands=target=cuda

// Tiles that the threads of a block cannot load together.

func.func @before(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %c16 = arith.constant 16 : index
  lacis.loop "i" %i to %c16 {
    %inside = arith.cmpi slt, %i, %n : index
    scf.if %inside {
      %first = lacis.read %y[%i] : tensor<?xf32> -> f32
      // expected-error @+1 {{stage: before loop 'k' stands what only some threads of a block may do ('lacis.read')}}
      %s = lacis.loop "k" %k to %c16 iter(%acc = %zero) -> (f32) {
        %v = lacis.read %x[%i, %k] staged<"k"> : tensor<?x?xf32> -> f32
        %r = arith.addf %acc, %v : f32
        lacis.yield %r : f32
      } stages
    }
    lacis.yield
  } bind<thread.x>
  return
}

// -----

func.func @else(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %c16 = arith.constant 16 : index
  lacis.loop "i" %i to %c16 {
    %inside = arith.cmpi slt, %i, %n : index
    scf.if %inside {
    } else {
      // expected-error @+1 {{stage: loop 'k' stands where a guard fails}}
      %s = lacis.loop "k" %k to %c16 iter(%acc = %zero) -> (f32) {
        %v = lacis.read %x[%i, %k] staged<"k"> : tensor<?x?xf32> -> f32
        %r = arith.addf %acc, %v : f32
        lacis.yield %r : f32
      } stages
    }
    lacis.yield
  } bind<thread.x>
  return
}

// -----

func.func @guards(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %c16 = arith.constant 16 : index
  lacis.loop "i" %i to %c16 {
    %inside = arith.cmpi slt, %i, %n : index
    scf.if %inside {
      %all = arith.cmpi slt, %n, %c16 : index
      %t = scf.if %all -> (f32) {
        // expected-error @+1 {{stage: loop 'k' stands under a guard that only some threads of a block pass}}
        %s = lacis.loop "k" %k to %c16 iter(%acc = %zero) -> (f32) {
          %v = lacis.read %x[%i, %k] staged<"k"> : tensor<?x?xf32> -> f32
          %r = arith.addf %acc, %v : f32
          lacis.yield %r : f32
        } stages
        scf.yield %s : f32
      } else {
        scf.yield %zero : f32
      }
    }
    lacis.yield
  } bind<thread.x>
  return
}

// -----

func.func @unknown(%x: tensor<?x?xf32>, %n: index) {
  %c16 = arith.constant 16 : index
  lacis.loop "i" %i to %c16 {
    // expected-error @+1 {{stage: axis 1 of the operand is read at coordinates that loop 'k' does not know when it begins (they are found inside, or have no constant range)}}
    lacis.loop "k" %k to %c16 {
      lacis.loop "m" %m to %n {
        %v = lacis.read %x[%i, %m] staged<"k"> : tensor<?x?xf32> -> f32
        lacis.yield
      }
      lacis.yield
    } stages
    lacis.yield
  } bind<thread.x>
  return
}

// -----

func.func @apart(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %n: index) {
  %zero = arith.constant 0.0 : f32
  %c16 = arith.constant 16 : index
  lacis.loop "i" %i to %c16 {
    // expected-error @+1 {{stage: axis 1 of the operand is read in two places that are not a constant apart}}
    lacis.loop "k" %k to %c16 {
      %v = lacis.read %x[%i, %k] staged<"k"> : tensor<?x?xf32> -> f32
      %m = arith.addi %k, %n : index
      %w = lacis.read %x[%i, %m] staged<"k"> : tensor<?x?xf32> -> f32
      lacis.yield
    } stages
    lacis.yield
  } bind<thread.x>
  return
}

// -----

func.func @two_axes(%x: tensor<?x?xf32>) {
  %c16 = arith.constant 16 : index
  // expected-error @+1 {{stage: vectors run along two axes of the operand; a tile has them along one}}
  lacis.loop "k" %k to %c16 {
    %v = lacis.read %x[%k, %k] along 0 staged<"k"> : tensor<?x?xf32> -> vector<4xf32>
    %w = lacis.read %x[%k, %k] along 1 staged<"k"> : tensor<?x?xf32> -> vector<4xf32>
    lacis.yield
  } stages
  return
}
