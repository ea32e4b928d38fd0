// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-hold-operands | FileCheck %s

// What a round reads of x is loaded where it begins, once; the loop inside has it in a register.
// CHECK-LABEL: func.func @held(
// CHECK-SAME:    %[[X:[^:]*]]: tensor<?xf32>, %[[Z:[^:]*]]: tensor<?xf32>
// CHECK:         lacis.loop "j" %[[J:.*]] to
// CHECK-NEXT:      %[[INSIDE:.*]] = arith.cmpi slt, %[[J]]
// CHECK-NEXT:      %[[HELD:.*]] = scf.if %[[INSIDE]]
// CHECK-NEXT:        lacis.read %[[X]][%[[J]]]
// CHECK-NOT:       lacis.read %[[X]]
// CHECK:           lacis.loop "k"
// CHECK:             %[[V:.*]] = lacis.read %[[Z]]
// CHECK:             arith.mulf %[[HELD]], %[[V]]
// CHECK:             arith.mulf %{{.*}}, %[[HELD]]
func.func @held(%x: tensor<?xf32>, %z: tensor<?xf32>, %y: tensor<?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  lacis.loop "j" %j to %n {
    %s = lacis.loop "k" %k to %m iter(%acc = %zero) -> (f32) {
      %a = lacis.read %x[%j] held<"j"> : tensor<?xf32> -> f32
      %v = lacis.read %z[%k] : tensor<?xf32> -> f32
      %b = lacis.read %x[%j] held<"j"> : tensor<?xf32> -> f32
      %p = arith.mulf %a, %v : f32
      %q = arith.mulf %p, %b : f32
      %r = arith.addf %acc, %q : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%j] : f32 to tensor<?xf32>
    lacis.yield
  } holds
  return
}

// -----

func.func @changes(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index, %m: index) {
  %zero = arith.constant 0.0 : f32
  // expected-error @+1 {{stage: the operand is read at coordinates that change within a round of loop "j" (axis 0); a register holds one element: name a loop inside of those, or jam or vectorize them}}
  lacis.loop "j" %j to %n {
    %s = lacis.loop "k" %k to %m iter(%acc = %zero) -> (f32) {
      %a = lacis.read %x[%k] held<"j"> : tensor<?xf32> -> f32
      %r = arith.addf %acc, %a : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%j] : f32 to tensor<?xf32>
    lacis.yield
  } holds
  return
}
