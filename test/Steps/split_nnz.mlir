// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// Shares of four entries: each finds its rows, finishes those that lie in it, and leaves its part of the others; the nest
// after it adds the parts of a row in their order.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>, #lacis.race<loop = "i_j0", strategy = "order">, #lacis.parallel<loop = "i_j0">, #lacis.parallel<loop = "i_j.i">]
// CHECK:         %[[ROOM:.*]] = lacis.positions %[[W:.*]][1]
// CHECK:         %[[SHARES:.*]] = arith.ceildivui %[[ROOM]], %c4
// CHECK:         %[[PARTS:.*]] = lacis.workspace(%[[SHARES]], %c2
// CHECK:         lacis.loop "i_j0" %[[S:.*]] to %[[SHARES]] {
// CHECK:           %[[FIRST:.*]] = arith.muli %[[S]], %c4
// CHECK:           %[[END:.*]] = arith.addi %[[FIRST]], %c4
// CHECK:           lacis.owner %[[W]][1] of %[[FIRST]] in %{{.*}}
// CHECK:           lacis.loop "i" %{{.*}} {
// CHECK:             %[[LO:.*]], %[[HI:.*]] = lacis.bounds
// CHECK:             arith.maxsi %[[LO]], %[[FIRST]]
// CHECK:             arith.minsi %[[HI]], %[[END]]
// CHECK:             lacis.loop "j"
// CHECK:             scf.if
// CHECK:               scf.if
// CHECK:                 lacis.write %{{.*}} to %[[Y:.*]][
// CHECK:               } else {
// CHECK:                 lacis.write %{{.*}} to %[[PARTS]][%[[S]],
// CHECK:       bind<parallel> meets race<"order">
// CHECK:         lacis.loop "i"<nest "i_j">
// CHECK:           scf.if
// CHECK:             lacis.loop "i_j0"<nest "i_j">
// CHECK:               lacis.read %[[PARTS]]
// CHECK:             lacis.write %{{.*}} to %[[Y]][
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @rows(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// A sum that does not begin at its neutral element would count its beginning twice.
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{split_nnz: the entries of 'j' are not the whole sum of an output element, from its neutral element on}}
// expected-note @+1 {{asked for #lacis.split_nnz<loop = "i_j", factor = 4>; loops here are 'i', 'j'}}
func.func @begins(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index) attributes {lacis.steps = [#lacis.split_nnz<loop = "i_j", factor = 4>]} {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %one) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{split_nnz: 'i' names no loop over positions; one is meant, 'j', or the loops of rows and entries, joined as in 'i_j'}}
// expected-note @+1 {{asked for}}
func.func @one(%n: index) attributes {lacis.steps = [#lacis.split_nnz<loop = "i", factor = 4>]} {
  lacis.loop "i" %i to %n {
    lacis.yield
  }
  return
}

// -----

// The positions of one row in strips of four: past its end the sum passes on.
// CHECK-LABEL: func.func @strips(
// CHECK:         %[[LO:.*]], %[[HI:.*]] = lacis.bounds
// CHECK:         %[[COUNT:.*]] = arith.subi %[[HI]], %[[LO]]
// CHECK:         %[[STRIPS:.*]] = arith.ceildivui %[[COUNT]], %c4
// CHECK:         lacis.loop "j0" %[[J0:.*]] to %[[STRIPS]] iter(%[[A0:.*]] = %{{.*}}) -> (f32) {
// CHECK:           lacis.loop "j1" %[[J1:.*]] to %c4{{.*}} iter(%[[A1:.*]] = %[[A0]]) -> (f32) {
// CHECK:             %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %[[COUNT]]
// CHECK:             %[[P:.*]] = arith.addi %[[LO]],
// CHECK:             scf.if %[[INSIDE]] -> (f32) {
// CHECK:               lacis.coordinate %{{.*}}[1] at %[[P]] from %[[LO]]
// CHECK:             } else {
// CHECK-NEXT:          scf.yield %[[A1]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @strips(%w: tensor<?x?xf32, #csr> {lacis.name = "w"}, %y: tensor<?xf32> {lacis.name = "y"}, %n: index)
    attributes {lacis.steps = [#lacis.split_nnz<loop = "j", factor = 4>]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  lacis.loop "i" %i to %n {
    %row = lacis.locate %w[0] at %c0(%i) : tensor<?x?xf32, #csr>
    %s = lacis.level_loop "j" %w[1] at %row (%p, %j) iter(%acc = %zero) -> (f32) : tensor<?x?xf32, #csr> {
      %v = lacis.value %w at %p : tensor<?x?xf32, #csr> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %s to %y[%i] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
