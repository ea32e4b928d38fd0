// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// CHECK-LABEL: func.func @order(
// CHECK:         lacis.loop "i"
// CHECK:       bind<parallel> meets race<"order">
func.func @order(%n: index)
    attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "order">, #lacis.parallel<loop = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } meets
  return
}

// -----

// expected-error @+1 {{race: iterations of loop 'i' meet in one element of the output, and it is bound to 'parallel'; race with a strategy brings them together; here would do 'order'}}
func.func @none(%n: index) attributes {lacis.steps = [#lacis.parallel<loop = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } meets
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

// expected-error @+2 {{race: no strategy 'luck' has code; there are 'atomic', 'order', 'private', 'segment'}}
// expected-note @+1 {{asked for}}
func.func @luck(%n: index) attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "luck">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } meets
  return
}

// -----

// expected-error @+2 {{race: loop 'i' has the strategy "order" already}}
// expected-note @+1 {{asked for}}
func.func @twice(%n: index) attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "order">, #lacis.race<loop = "i", strategy = "private">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } meets
  return
}

// -----

// expected-error @+2 {{race: the parts of loop 'j' are those of loop 'i', which has the strategy "order" already}}
// expected-note @+1 {{asked for}}
func.func @parts(%n: index) attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "order">, #lacis.race<loop = "j", strategy = "private">]} {
  lacis.loop "i" %i to %n {
    lacis.loop "j" %j to %n {
      lacis.yield
    } meets
    lacis.yield
  } meets
  return
}

// -----

// expected-error @+2 {{race: 'private' keeps what a loop carries, or the parts of rows of shares; there are none here; 'order' would do}}
// expected-note @+1 {{asked for}}
func.func @kept(%n: index) attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "private">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } meets
  return
}

// -----

// expected-error @+2 {{race: 'atomic' adds the parts of rows that shares of entries leave; there are none here; 'order' would do}}
// expected-note @+1 {{asked for}}
func.func @atomic_kept(%n: index) attributes {lacis.steps = [#lacis.race<loop = "i", strategy = "atomic">]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  } meets
  return
}
