// SPDX-License-Identifier: Apache-2.0
// Copies of tiles in a checked kernel: one that would begin outside does not happen, and is recorded.
// RUN: sed 's/{lacis.kernel}/{lacis.kernel, lacis.checked}/' %S/block64.mlir | lacis-opt -lacis-to-buffers=target=cuda | FileCheck %s
// RUN: sed 's/{lacis.kernel}/{lacis.kernel, lacis.checked}/' %S/block16.mlir | lacis-opt -lacis-to-buffers=target=cuda | FileCheck %s --check-prefix=LIST
// RUN: sed 's/{lacis.kernel}/{lacis.kernel, lacis.checked}/' %S/block64.mlir | lacis-compile - --target=cuda:sm_90a --emit=ptx -o - | FileCheck %s --check-prefix=PTX

// CHECK:       kind = "fault"
// CHECK:       %[[ROW:.*]] = arith.cmpi ult
// CHECK:       %[[COLUMN:.*]] = arith.cmpi ult
// CHECK:       %[[INSIDE:.*]] = arith.andi %[[ROW]], %[[COLUMN]]
// CHECK:       scf.if %[[INSIDE]] {
// CHECK-NEXT:    lacis.load_tile
// CHECK:       } else {
// CHECK:         llvm.atomicrmw umin

// LIST:         scf.if
// LIST:           lacis.load_run
// LIST-NEXT:    } else {
// LIST:           llvm.atomicrmw umin

// PTX:         cp.async.bulk.tensor.2d.shared::cluster.global
// PTX:         atom.global.min.u64
