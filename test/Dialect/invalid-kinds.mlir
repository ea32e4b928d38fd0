// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-resolve-kinds

// What a level kind of the user's refuses to be.
// expected-error @below {{needs the method 'coordinate'}}
lacis.kind @k arrays() {
  bounds(%p) {
    lacis.answer %p, %p : index, index
  }
}

// -----

// expected-error @below {{array 'pos' cannot be 'f32'}}
"lacis.kind"() <{sym_name = "k", methods = [], arrays = [{name = "pos", type = f32, per = "own", plus = 0 : i64}]}> : () -> ()

// -----

// expected-error @below {{array 'pos' cannot be 'ui64': use i8, i16, i32, i64, ui8, ui16 or ui32}}
lacis.kind @k arrays(pos : ui64 per own) {
}

// -----

// expected-error @below {{array 'pos' has no length per 'row': use 'parent', 'position' or 'own'}}
lacis.kind @k arrays(pos : i32 per row) {
}

// -----

// expected-error @below {{array 'pos' cannot have 1 more elements than one per position: use 'plus 1' per parent or own}}
lacis.kind @k arrays(pos : i32 per position plus 1) {
}

// -----

// expected-error @below {{an array is a record of name, type, per and plus; got "pos"}}
"lacis.kind"() <{sym_name = "k", methods = [], arrays = ["pos"]}> : () -> ()

// -----

// expected-error @below {{array 'pos' is given twice}}
lacis.kind @k arrays(pos : i32 per own, pos : i32 per own) {
}

// -----

// expected-error @below {{'bounds' is given twice, or names an array too}}
lacis.kind @k arrays(bounds : i32 per own) {
  bounds(%p) {
    lacis.answer %p, %p : index, index
  }
}

// -----

// expected-error @below {{has 1 names of methods for 0 bodies}}
"lacis.kind"() <{sym_name = "k", methods = ["bounds"], arrays = []}> : () -> ()

// -----

// expected-error @below {{no fact 'sorted' of a level kind; there are 'ordered', 'unique', 'fills' and 'fixed = n'}}
lacis.kind @k arrays() facts(sorted) {
}

// -----

// expected-error @below {{each parent has 1 position or more, not 0}}
lacis.kind @k arrays() facts(fixed = 0) {
  coordinate(%lo, %pos) {
    lacis.answer %pos : index
  }
}

// -----

// expected-error @below {{says 'fixed', from which the bounds follow: leave the method 'bounds' out}}
lacis.kind @k arrays() facts(fixed = 2) {
  bounds(%p) {
    lacis.answer %p, %p : index, index
  }
  coordinate(%lo, %pos) {
    lacis.answer %pos : index
  }
}

// -----

// expected-error @below {{needs the method 'bounds'}}
lacis.kind @k arrays() {
  coordinate(%lo, %pos) {
    lacis.answer %pos : index
  }
}
