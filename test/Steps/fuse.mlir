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
