// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps=target=cuda | FileCheck %s

// CHECK-LABEL: func.func @units(
// CHECK:         lacis.loop "i"
// CHECK:           lacis.loop "b0"
// CHECK:             lacis.loop "b1"
// CHECK:             bind<lane>
// CHECK:           bind<warp>
// CHECK:         bind<block.y>
func.func @units(%y: tensor<?x?xf32>, %n: index)
    attributes {lacis.steps = [#lacis.bind<loop = "i", unit = "block.y">, #lacis.bind<unit = "warp", loop = "b0">,
                               #lacis.bind<loop = "b1", unit = "lane">]} {
  %zero = arith.constant 0.0 : f32
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  lacis.loop "i" %i to %n {
    lacis.loop "b0" %b0 to %c4 {
      lacis.loop "b1" %b1 to %c32 {
        lacis.write %zero to %y[%i, %b1] : f32 to tensor<?x?xf32>
        lacis.yield
      }
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{bind: no unit 'warps'; units are 'block.x', 'block.y', 'block.z', 'thread.x'}}
// expected-note @+1 {{asked for #lacis.bind<loop = "i", unit = "warps">; loops here are 'i'}}
func.func @no_unit(%n: index) attributes {lacis.steps = [#lacis.bind<loop = "i", unit = "warps">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{bind: loop 'i' does not run 32 times, nor a number of times that with the other loops on lanes divides 32; split it first}}
// expected-note @+1 {{asked for}}
func.func @no_warp(%n: index) attributes {lacis.steps = [#lacis.bind<loop = "i", unit = "lane">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{bind: loop 'i' does not run a known number of times up to 1024, as 'thread.x' does; split it first}}
// expected-note @+1 {{asked for}}
func.func @no_size(%n: index) attributes {lacis.steps = [#lacis.bind<loop = "i", unit = "thread.x">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{bind: 4096 threads are more than a block has (1024)}}
// expected-note @+1 {{asked for}}
func.func @many() attributes {lacis.steps = [#lacis.bind<loop = "i", unit = "thread.x">, #lacis.bind<loop = "b", unit = "thread.y">]} {
  %c64 = arith.constant 64 : index
  lacis.loop "i" %i to %c64 {
    lacis.loop "b" %b to %c64 {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{bind: 'warp' is not free: loop 'i' is bound to 'thread.x'}}
// expected-note @+1 {{asked for}}
func.func @taken() attributes {lacis.steps = [#lacis.bind<loop = "i", unit = "thread.x">, #lacis.bind<loop = "b", unit = "warp">]} {
  %c4 = arith.constant 4 : index
  lacis.loop "i" %i to %c4 {
    lacis.loop "b" %b to %c4 {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{bind: loop 'i' runs 8 times; a block has up to 7 warpgroups that multiply}}
// expected-note @+1 {{asked for}}
func.func @groups() attributes {lacis.steps = [#lacis.bind<loop = "i", unit = "warpgroup">]} {
  %c8 = arith.constant 8 : index
  lacis.loop "i" %i to %c8 {
    lacis.yield
  }
  return
}
