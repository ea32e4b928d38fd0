// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// CHECK-LABEL: func.func @shared(
// CHECK:         lacis.loop "i"
// CHECK:       bind<parallel>
func.func @shared(%n: index) attributes {lacis.steps = [#lacis.parallel<loop = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{parallel: loop 'j' carries a sum; two threads would race for it; race with a strategy makes its iterations units: none would do}}
// expected-note @+1 {{asked for #lacis.parallel<loop = "j">; loops here are 'i', 'j'}}
func.func @sum(%y: tensor<?xf32>, %n: index) attributes {lacis.steps = [#lacis.parallel<loop = "j">]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    %s = lacis.loop "j" %j to %n iter(%a = %zero) -> (f32) {
      lacis.yield %a : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+1 {{bind: a CPU has no 'block.x'; use parallel}}
func.func @gpu_unit(%n: index) attributes {lacis.steps = [#lacis.bind<loop = "i", unit = "block.x">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{parallel: loop 'j' walks the positions of a level, not coordinates}}
// expected-note @+1 {{asked for}}
func.func @level(%w: tensor<?x?xf32, #csr>, %n: index) attributes {lacis.steps = [#lacis.parallel<loop = "j">]} {
  lacis.loop "i" %i to %n {
    lacis.level_loop "j" %w[1] at %i (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  return
}
