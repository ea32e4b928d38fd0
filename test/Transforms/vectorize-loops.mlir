// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-vectorize-loops | FileCheck %s

// Lanes of the loop become a vector; the loop inside stays, with a vector carried; the guard counts lanes.
// CHECK-LABEL: func.func @scale(
// CHECK-NOT:     lacis.loop "b1"
// CHECK:         %[[COUNT:.*]] = arith.subi %{{.*}}, %[[FIRST:.*]] : index
// CHECK:         lacis.loop "j" %[[J:.*]] to %{{.*}} iter(%[[ACC:.*]] = %{{.*}}) -> (vector<4xf32>)
// CHECK:           lacis.read %{{.*}}[%[[J]], %[[FIRST]]] along 1 count %[[COUNT]] : {{.*}} -> vector<4xf32>
// CHECK:           arith.addf %[[ACC]], %{{.*}} : vector<4xf32>
// CHECK:         lacis.write %{{.*}} to %{{.*}}[%[[FIRST]]] along 0 count %[[COUNT]]
func.func @scale(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %b0: index, %n: index) {
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  lacis.loop "b1" %b1 to %c4 {
    %scaled = arith.muli %b0, %c4 : index
    %b = arith.addi %scaled, %b1 : index
    %ok = arith.cmpi slt, %b, %n : index
    scf.if %ok {
      %sum = lacis.loop "j" %j to %n iter(%acc = %zero) -> (f32) {
        %v = lacis.read %x[%j, %b] : tensor<?x?xf32> -> f32
        %s = arith.addf %acc, %v : f32
        lacis.yield %s : f32
      }
      lacis.write %sum to %y[%b] : f32 to tensor<?xf32>
    }
    lacis.yield
  } vectorize<4>
  return
}

// -----

func.func @bounds(%x: tensor<?xf32>, %y: tensor<?xf32>) {
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{vectorize: the bounds of a loop inside depend on the lanes of 'b'}}
  lacis.loop "b" %b to %c4 {
    %sum = lacis.loop "j" %j to %b iter(%acc = %zero) -> (f32) {
      lacis.yield %acc : f32
    }
    lacis.write %sum to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  } vectorize<4>
  return
}

// -----

// A coordinate as a number: that of the first lane, and one more for each after it.
// CHECK-LABEL: func.func @numbers(
// CHECK:         %[[AT:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK:         %[[LANES:.*]] = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
// CHECK:         %[[ALL:.*]] = vector.broadcast %[[AT]] : i32 to vector<4xi32>
// CHECK:         %[[NUMBERS:.*]] = arith.addi %[[ALL]], %[[LANES]]
// CHECK:         arith.sitofp %[[NUMBERS]] : vector<4xi32> to vector<4xf32>
func.func @numbers(%y: tensor<?xf32>, %b0: index) {
  %c4 = arith.constant 4 : index
  lacis.loop "b1" %b1 to %c4 {
    %b = arith.addi %b0, %b1 : index
    %i = arith.index_cast %b : index to i32
    %v = arith.sitofp %i : i32 to f32
    lacis.write %v to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  } vectorize<4>
  return
}
