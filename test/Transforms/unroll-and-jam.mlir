// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-unroll-and-jam | FileCheck %s

// Two rows share the loop inside; the second is checked at its read and its write.
// CHECK-LABEL: func.func @rows(
// CHECK-NOT:     lacis.loop "i1"
// CHECK:         scf.if
// CHECK:           lacis.loop "j" %[[J:.*]] to %{{.*}} iter(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (f32, f32)
// CHECK:             arith.addf %[[A]],
// CHECK:             arith.addf %[[B]],
// CHECK:           lacis.write
// CHECK:           scf.if
// CHECK-NEXT:        lacis.write
func.func @rows(%x: tensor<?xf32>, %y: tensor<?xf32>, %i0: index, %n: index) {
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  lacis.loop "i1" %i1 to %c2 {
    %scaled = arith.muli %i0, %c2 : index
    %i = arith.addi %scaled, %i1 : index
    %ok = arith.cmpi slt, %i, %n : index
    scf.if %ok {
      %sum = lacis.loop "j" %j to %n iter(%acc = %zero) -> (f32) {
        %v = lacis.read %x[%j] : tensor<?xf32> -> f32
        %s = arith.addf %acc, %v : f32
        lacis.yield %s : f32
      }
      lacis.write %sum to %y[%i] : f32 to tensor<?xf32>
    }
    lacis.yield
  } jam<2>
  return
}

// -----

func.func @one_place(%y: tensor<?xf32>, %n: index) {
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{jam: all copies of loop 'i' write one element}}
  lacis.loop "i" %i to %c2 {
    lacis.write %zero to %y[%n] : f32 to tensor<?xf32>
    lacis.yield
  } jam<2>
  return
}

// -----

// A guard on coordinates that were read from an array may hold for any row.
func.func @found(%w: tensor<?xf32, #lacis.format<(i) -> (i : compressed)>>, %y: tensor<?xf32>, %p: index, %n: index, %v: f32) {
  %c2 = arith.constant 2 : index
  // expected-error @below {{jam: a guard inside depends on the coordinates that loop 'i' finds}}
  lacis.loop "i" %i to %c2 {
    %at = arith.addi %p, %i : index
    %crd, %valid = lacis.coordinate %w[0] at %at from %p : tensor<?xf32, #lacis.format<(i) -> (i : compressed)>> -> index
    %inside = arith.cmpi slt, %crd, %n : index
    scf.if %inside {
      lacis.write %v to %y[%crd] : f32 to tensor<?xf32>
    }
    lacis.yield
  } jam<2>
  return
}

// -----

// Rounds of fused loops pass guards of their own: the copies run where one of them passes, and each looks for itself.
// CHECK-LABEL: func.func @fused(
// CHECK:         %[[ANY:.*]] = arith.ori %[[FIRST:.*]], %[[SECOND:.*]] : i1
// CHECK:         scf.if %[[ANY]] {
// CHECK:           %[[SAFE:.*]] = arith.select %[[FIRST]], %[[OWN:.*]], %{{.*}} : index
// CHECK:           %[[PLACE:.*]] = arith.select %[[FIRST]], %[[OWN]], %[[SAFE]] : index
// CHECK-NEXT:      lacis.read %{{.*}}[%[[PLACE]]]
// CHECK:           scf.if %[[FIRST]]
// CHECK-NEXT:        lacis.write
// CHECK:           scf.if %[[SECOND]]
// CHECK-NEXT:        lacis.write
func.func @fused(%x: tensor<?xf32>, %y: tensor<?xf32>, %first: index, %strips: index, %n: index) {
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  lacis.loop "i_k01" %r to %c2 {
    %pair = arith.addi %first, %r : index
    %k0 = arith.remui %pair, %strips : index
    %k = arith.muli %k0, %c3 : index
    %ok = arith.cmpi slt, %k, %n : index
    scf.if %ok {
      %v = lacis.read %x[%k] : tensor<?xf32> -> f32
      lacis.write %v to %y[%k] : f32 to tensor<?xf32>
    }
    lacis.yield
  } jam<2>
  return
}
