// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-apply-steps=target=cuda | FileCheck %s

// A sum of few vectors is shared by units, in copies that this case alone keeps; the units can lie further out.
// CHECK: %[[UNITS:.+]] = arith.constant 4 : index
// CHECK: %[[COPIES:.+]] = lacis.workspace(%[[ALL:.+]], %{{.+}}, %{{.+}})
// CHECK: lacis.loop "b0"<case "upto8"> %[[B0:.+]] to
// CHECK-NEXT: lacis.loop "k1"<case "upto8"> %[[UNIT:.+]] to %[[ALL]]
// CHECK-NEXT: lacis.loop "b1"<case "upto8"> %[[B1:.+]] to
// CHECK: scf.if
// CHECK: %[[SUM:.+]] = lacis.loop "k0"<case "upto8">
// CHECK: lacis.write %[[SUM]] to %[[COPIES]][%[[UNIT]], %[[B0]], %[[B1]]]
// CHECK: bind<block.x> meets race<"private">
// CHECK: lacis.loop "b0"<case "upto8", nest "k1">
// CHECK: lacis.loop "k1"<case "upto8", nest "k1"> {{.+}} to %[[UNITS]]
// CHECK: lacis.loop "b0"
func.func @sums(%x: tensor<?x?xf32> {lacis.name = "x"}, %y: tensor<?xf32>)
    attributes {lacis.steps = [
      #lacis.upto<loop = "b", most = 8>, #lacis.split<loop = "upto8.b", factor = 8>,
      #lacis.split<loop = "upto8.k", factor = 4>, #lacis.reorder<loops = ["upto8.k1", "upto8.k0"]>,
      #lacis.race<loop = "upto8.k1", strategy = "private">, #lacis.reorder<loops = ["upto8.b0", "upto8.k1", "upto8.b1"]>,
      #lacis.bind<loop = "upto8.k1", unit = "block.x">]} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  lacis.loop "b" %b to %n {
    %sum = lacis.loop "k" %k to %m iter(%acc = %zero) -> (f32) {
      %v = lacis.read %x[%b, %k] : tensor<?x?xf32> -> f32
      %r = arith.addf %acc, %v : f32
      lacis.yield %r : f32
    }
    lacis.write %sum to %y[%b] : f32 to tensor<?xf32>
    lacis.yield
  }
  return
}
