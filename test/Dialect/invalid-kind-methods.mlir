// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-resolve-kinds

// What a method of a level kind refuses to be.
// expected-error @below {{no method 'walk' of a level kind; there are 'bounds', 'open', 'coordinate', 'seek', 'find', 'owner'}}
lacis.kind @k arrays() {
  bounds(%p) { lacis.answer %p, %p : index, index }
  coordinate(%lo, %pos) { lacis.answer %pos : index }
  walk(%p) { lacis.answer %p : index }
}

// -----

// expected-error @below {{method 'bounds' takes 1 indices}}
lacis.kind @k arrays() {
  bounds(%p, %q) { lacis.answer %p, %p : index, index }
  coordinate(%lo, %pos) { lacis.answer %pos : index }
}

// -----

lacis.kind @k arrays() {
  // expected-error @below {{of method 'bounds' gives 'index', not 'index', 'index'}}
  bounds(%p) { lacis.answer %p : index }
  coordinate(%lo, %pos) { lacis.answer %pos : index }
}

// -----

// expected-error @below {{method 'bounds' must end with 'lacis.answer'}}
lacis.kind @k arrays() {
  bounds(%p) { llvm.unreachable }
  coordinate(%lo, %pos) { lacis.answer %pos : index }
}

// -----

lacis.kind @k arrays() {
  bounds(%p) {
    // expected-error @below {{'func.call' has no place in a level kind: its methods are arithmetic, 'scf' loops, 'lacis.field' and 'lacis.level_size'}}
    func.call @f() : () -> ()
    lacis.answer %p, %p : index, index
  }
  coordinate(%lo, %pos) { lacis.answer %pos : index }
}
func.func private @f()

// -----

lacis.kind @k arrays() {
  bounds(%p) {
    // expected-error @below {{'arith.constant' makes what is no index and no integer; a level kind has no other values}}
    %x = arith.constant 1.0 : f32
    lacis.answer %p, %p : index, index
  }
  coordinate(%lo, %pos) { lacis.answer %pos : index }
}

// -----

lacis.kind @k arrays() {
  bounds(%p) {
    // expected-error @below {{level kind '@k' has no array 'pos'}}
    %x = lacis.field @pos[%p]
    lacis.answer %p, %x : index, index
  }
  coordinate(%lo, %pos) { lacis.answer %pos : index }
}

// -----

// A format names a kind that is there, and stays what a format may be.
// expected-error @below {{no operation 'lacis.kind @nobody' defines the level kind '@nobody'}}
func.func private @f(tensor<?x?xf32, #lacis.format<(i, j) -> (i : dense, j : @nobody)>>)

// -----

// expected-error @below {{'@z' has the axis 'i' twice}}
func.func private @f(tensor<?x?xf32, #lacis.format<(i, j) let z = @z(i, i) -> (z : compressed)>>)

// -----

// expected-error @below {{'@z' needs an axis}}
func.func private @f(tensor<?x?xf32, #lacis.format<(i, j) let z = @z() -> (z : compressed)>>)
