// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-stage-operands | FileCheck %s

// All threads load the tile of a round and meet; the guard that only some of them pass moves behind.
// CHECK-LABEL: func.func @tile(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?x?xf32>
// CHECK:         lacis.loop "b1" %[[B1:.*]] to %c16
// CHECK:           %[[INSIDE:.*]] = arith.cmpi slt
// CHECK-NOT:       scf.if
// CHECK:           lacis.loop "k0"
// CHECK:             %[[TILE:.*]] = lacis.workspace(%c16{{.*}}, %c33{{.*}}) place<shared>
// CHECK:             lacis.loop "tile"<nest "k0"> %[[N:.*]] to %c512
// CHECK:               %[[COLUMN:.*]] = arith.remui %[[N]], %c32
// CHECK:               %[[ROW:.*]] = arith.divui %[[N]], %c32
// CHECK:               lacis.read %[[X]]
// CHECK:               lacis.write %{{.*}} to %[[TILE]][%[[ROW]], %[[COLUMN]]]
// CHECK:             } bind<threads>
// CHECK:             nvvm.barrier
// CHECK:             scf.if %[[INSIDE]] -> (f32)
// CHECK:               lacis.loop "k1"
// CHECK:                 lacis.read %[[TILE]]
// CHECK:             nvvm.barrier
// CHECK:           scf.if %[[INSIDE]]
// CHECK-NEXT:        lacis.write
func.func @tile(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %blocks: index, %rounds: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  lacis.loop "b0" %b0 to %blocks {
    lacis.loop "b1" %b1 to %c16 {
      %first = arith.muli %b0, %c16 : index
      %b = arith.addi %first, %b1 : index
      %inside = arith.cmpi slt, %b, %n : index
      scf.if %inside {
        %s = lacis.loop "k0" %k0 to %rounds iter(%acc = %zero) -> (f32) {
          %t = lacis.loop "k1" %k1 to %c32 iter(%own = %acc) -> (f32) {
            %start = arith.muli %k0, %c32 : index
            %k = arith.addi %start, %k1 : index
            %v = lacis.read %x[%b, %k] staged<"k0"> : tensor<?x?xf32> -> f32
            %r = arith.addf %own, %v : f32
            lacis.yield %r : f32
          }
          lacis.yield %t : f32
        } stages
        lacis.write %s to %y[%b] : f32 to tensor<?xf32>
      }
      lacis.yield
    } bind<thread.x>
    lacis.yield
  } bind<block.x>
  return
}

// -----

func.func @threads(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %rounds: index) {
  %zero = arith.constant 0.0 : f32
  %c16 = arith.constant 16 : index
  lacis.loop "b" %b to %c16 {
    // expected-error @+1 {{stage: how often loop 'k' runs differs between the threads of a block, which load together at 'k'}}
    %s = lacis.loop "k" %k to %b iter(%acc = %zero) -> (f32) {
      %v = lacis.read %x[%b, %k] staged<"k"> : tensor<?x?xf32> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    } stages
    lacis.write %s to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  } bind<thread.x>
  return
}

// -----

func.func @large(%x: tensor<?x?xf32>, %y: tensor<?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c16 = arith.constant 16 : index
  %c1024 = arith.constant 1024 : index
  // expected-error @+1 {{stage: with the tiles of loop 'b' a block takes 65600 bytes of shared memory, more than 49152; split its loops smaller}}
  lacis.loop "b" %b to %c16 {
    lacis.loop "i" %i to %c16 {
      %s = lacis.loop "k" %k to %c1024 iter(%acc = %zero) -> (f32) {
        %v = lacis.read %x[%i, %k] staged<"b"> : tensor<?x?xf32> -> f32
        %r = arith.addf %acc, %v : f32
        lacis.yield %r : f32
      }
      lacis.write %s to %y[%i] : f32 to tensor<?xf32>
      lacis.yield
    } bind<thread.x>
    lacis.yield
  } bind<block.x> stages
  return
}

// -----

func.func @on_threads(%x: tensor<?x?xf32>, %n: index) {
  %c16 = arith.constant 16 : index
  // expected-error @+1 {{stage: loop 'b' runs on 'thread.x'; the threads of a block load together, in a loop that all of them run}}
  lacis.loop "b" %b to %c16 {
    lacis.yield
  } bind<thread.x> stages
  return
}

// -----

// expected-error @+1 {{stage: no loop is tensorized, for which tiles of "x" would be loaded; name the loop in whose rounds they are: stage("x", "shared", loop)}}
func.func @no_tiles(%x: tensor<?x?xf32> {lacis.name = "x", lacis.staged = "shared"}) {
  return
}
