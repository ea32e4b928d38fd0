// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s | FileCheck %s
// RUN: lacis-opt %s | lacis-opt | FileCheck %s

// A loop says how its rounds are brought together; in a text it follows from the body, through inner loops and guards.

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>

// CHECK-LABEL: func.func @nested(
// CHECK:           lacis.yield %{{.*}} : f32
// CHECK-NEXT:    } reduce<add>{{$}}
// CHECK:           lacis.yield %{{.*}} : f32
// CHECK-NEXT:    } reduce<add> unroll<4>{{$}}
func.func @nested(%w: tensor<?x?xf32, #csr>, %n: index) -> f32 {
  %zero = arith.constant 0.0 : f32
  %sum = lacis.loop "i" %i to %n iter(%outer = %zero) -> (f32) {
    %row = lacis.locate %w[0] at %i(%i) : tensor<?x?xf32, #csr>
    %inner = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%before = %outer) -> (f32) : tensor<?x?xf32, #csr> {
      %inside = arith.cmpi slt, %j, %n : index
      %next = scf.if %inside -> (f32) {
        %value = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
        %added = arith.addf %before, %value : f32
        scf.yield %added : f32
      } else {
        scf.yield %before : f32
      }
      lacis.yield %next : f32
    }
    lacis.yield %inner : f32
  } unroll<4>
  return %sum : f32
}

// CHECK-LABEL: func.func @others(
// CHECK:         } reduce<max>{{$}}
// CHECK:         } reduce<or>{{$}}
// CHECK:         } reduce<mul>{{$}}
func.func @others(%x: tensor<?xf32>, %n: index, %m: f32, %some: i1) {
  %largest = lacis.loop "i" %i to %n iter(%before = %m) -> (f32) {
    %value = lacis.read %x[%i] : tensor<?xf32> -> f32
    %next = arith.maximumf %value, %before : f32
    lacis.yield %next : f32
  }
  %any = lacis.loop "j" %j to %n iter(%before = %some) -> (i1) {
    %next = arith.ori %before, %some : i1
    lacis.yield %next : i1
  }
  %both:2 = lacis.loop "k" %k to %n iter(%one = %m, %other = %m) -> (f32, f32) {
    %first = arith.mulf %one, %m : f32
    %second = arith.mulf %other, %m : f32
    lacis.yield %first, %second : f32, f32
  }
  return
}

// What no one operation brings together is no reduction.
// CHECK-LABEL: func.func @none(
// CHECK-NOT:     reduce
// CHECK:         return
func.func @none(%n: index, %x: f32) {
  %last = lacis.loop "i" %i to %n iter(%before = %x) -> (f32) {
    %next = arith.subf %before, %x : f32
    lacis.yield %next : f32
  }
  %both:2 = lacis.loop "j" %j to %n iter(%one = %x, %other = %x) -> (f32, f32) {
    %first = arith.addf %one, %x : f32
    %second = arith.maximumf %other, %x : f32
    lacis.yield %first, %second : f32, f32
  }
  return
}
