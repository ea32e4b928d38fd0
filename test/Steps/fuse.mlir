// RUN: lacis-opt %s -split-input-file -verify-diagnostics -lacis-apply-steps | FileCheck %s

// for i: for j  -->  for i_j, whose two coordinates are its quotient and remainder.
// CHECK-LABEL: func.func @pairs(
// CHECK-SAME:    %{{[^:]*}}: tensor<?x?xf32>, %[[N:[^:]*]]: index, %[[M:[^:]*]]: index
// CHECK:         %[[SIZE:.*]] = arith.muli %[[N]], %[[M]]
// CHECK:         lacis.loop "i_j" %[[IJ:.*]] to %[[SIZE]] {
// CHECK-DAG:       %[[I:.*]] = arith.divui %[[IJ]], %[[M]]
// CHECK-DAG:       %[[J:.*]] = arith.remui %[[IJ]], %[[M]]
// CHECK:           lacis.write %{{.*}} to %{{.*}}[%[[I]], %[[J]]]
func.func @pairs(%y: tensor<?x?xf32>, %n: index, %m: index)
    attributes {lacis.steps = [#lacis.fuse<outer = "i", inner = "j">]} {
  %zero = arith.constant 0.0 : f32
  lacis.loop "i" %i to %n {
    lacis.loop "j" %j to %m {
      lacis.write %zero to %y[%i, %j] : f32 to tensor<?x?xf32>
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{fuse: loop 'i' is not the only thing in loop 'j'; reorder them first}}
// expected-note @+1 {{asked for}}
func.func @other_way(%n: index) attributes {lacis.steps = [#lacis.fuse<outer = "j", inner = "i">]} {
  lacis.loop "i" %i to %n {
    lacis.loop "j" %j to %n {
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// expected-error @+2 {{fuse: the size of loop 'j' or 'i' is computed inside the nest; only loops whose sizes are known before it are fused}}
// expected-note @+1 {{asked for}}
func.func @sizes(%n: index) attributes {lacis.steps = [#lacis.fuse<outer = "i", inner = "j">]} {
  lacis.loop "k" %k to %n {
    %m = arith.addi %k, %k : index
    lacis.loop "i" %i to %m {
      lacis.loop "j" %j to %n {
        lacis.yield
      }
      lacis.yield
    }
    lacis.yield
  }
  return
}

// -----

// for i: for j in row i  -->  for i_j over all positions: the row owns the position; what it adds is a part of the row.
// CHECK-LABEL: func.func @entries(
// CHECK-SAME:    %[[W:[^:]*]]: tensor<?x?xf32, {{.*}}>, %[[Y:[^:]*]]: tensor<?xf32>
// CHECK:         %[[ALL:.*]] = lacis.positions %[[W]][1]
// CHECK:         lacis.loop "i_j" %[[IJ:.*]] to %{{[^ ]*}} {
// CHECK:           %[[ROW:.*]] = lacis.owner %[[W]][1]
// CHECK-NOT:       lacis.owner
// CHECK:           lacis.loop "j"
// CHECK:         } bind<parallel> meets race<"order">
// CHECK:         lacis.loop "i"<nest "i_j"> %[[I:.*]] to
// CHECK:           %[[SUM:.*]] = lacis.loop "i_j"<nest "i_j">
// CHECK:           lacis.write %[[SUM]] to %[[Y]][%[[I]]]
#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
func.func @entries(%w: tensor<?x?xf32, #csr>, %y: tensor<?xf32>, %n: index)
    attributes {lacis.steps = [#lacis.fuse<outer = "i", inner = "j">]} {
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

#csr = #lacis.format<(i, j) -> (i : dense, j : compressed)>
// expected-error @+2 {{fuse: the entries of 'j' do not lie in the order of loop 'k'; see walk}}
// expected-note @+1 {{asked for}}
func.func @other_rows(%w: tensor<?x?xf32, #csr>, %n: index) attributes {lacis.steps = [#lacis.fuse<outer = "k", inner = "j">]} {
  %c0 = arith.constant 0 : index
  lacis.loop "k" %k to %n {
    lacis.level_loop "j" %w[1] at %c0 (%p, %j) : tensor<?x?xf32, #csr> {
      lacis.yield
    }
    lacis.yield
  }
  return
}
