// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// CHECK-LABEL: func.func @order(
// CHECK:         lacis.loop "i"
// CHECK:       {bind = "parallel", lacis.meets, lacis.race = "order"}
func.func @order(%n: index)
    attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "order">, #lacis.parallel<loop = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } {lacis.meets}
  return
}

// -----

// expected-error @+1 {{race: iterations of loop 'i' meet in one element of the output, and it is bound to 'parallel'; race with the strategy 'order' brings them together}}
func.func @none(%n: index) attributes {lacis.steps = [#lacis.parallel<loop = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } {lacis.meets}
  return
}

// -----

// expected-error @+2 {{race: iterations of loop 'i' do not meet in one output}}
// expected-note @+1 {{asked for}}
func.func @needless(%n: index) attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "order">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{race: no strategy 'atomic' has code yet; there is 'order'}}
// expected-note @+1 {{asked for}}
func.func @atomic(%n: index) attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "atomic">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } {lacis.meets}
  return
}
