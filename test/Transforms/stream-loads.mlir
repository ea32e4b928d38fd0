// SPDX-License-Identifier: Apache-2.0
// RUN: lacis-opt %s -lacis-stream-loads | FileCheck %s

// CHECK-LABEL: func.func @streamed(
// CHECK-SAME:    %[[P:[^:]*]]: !llvm.ptr, %[[Q:[^:]*]]: !llvm.ptr<1>
// CHECK:         %[[GLOBAL:.*]] = llvm.addrspacecast %[[P]] : !llvm.ptr to !llvm.ptr<1>
// CHECK:         %[[PAIR:.*]] = llvm.inline_asm asm_dialect = att "ld.global.nc.L1::no_allocate.v2.b32 {$0, $1}, [$2];", "=r,=r,l" %[[GLOBAL]]
// CHECK:         %[[WORDS:.*]] = vector.from_elements %{{.*}}, %{{.*}} : vector<2xi32>
// CHECK:         %[[A:.*]] = llvm.bitcast %[[WORDS]] : vector<2xi32> to vector<4xbf16>
// CHECK:         llvm.inline_asm asm_dialect = att "ld.global.nc.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l" %[[Q]]
// CHECK:         %[[WORD:.*]] = llvm.inline_asm asm_dialect = att "ld.global.nc.L1::no_allocate.b32 $0, [$1];", "=r,l" %[[Q]]
// CHECK:         llvm.bitcast %[[WORD]] : i32 to f32
// CHECK-NOT:     llvm.load
func.func @streamed(%p: !llvm.ptr, %q: !llvm.ptr<1>) -> (vector<4xbf16>, vector<8xf16>, f32) {
  %a = llvm.load %p {alignment = 8 : i64, nontemporal} : !llvm.ptr -> vector<4xbf16>
  %b = llvm.load %q {alignment = 16 : i64, nontemporal} : !llvm.ptr<1> -> vector<8xf16>
  %c = llvm.load %q {nontemporal} : !llvm.ptr<1> -> f32
  return %a, %b, %c : vector<4xbf16>, vector<8xf16>, f32
}

// What is read again, has a size that no instruction loads, or is not aligned to it stays as it is.
// CHECK-LABEL: func.func @others(
// CHECK-COUNT-3: llvm.load
func.func @others(%p: !llvm.ptr) -> (vector<4xbf16>, i8, vector<4xbf16>) {
  %a = llvm.load %p {alignment = 8 : i64} : !llvm.ptr -> vector<4xbf16>
  %b = llvm.load %p {nontemporal} : !llvm.ptr -> i8
  %c = llvm.load %p {alignment = 2 : i64, nontemporal} : !llvm.ptr -> vector<4xbf16>
  return %a, %b, %c : vector<4xbf16>, i8, vector<4xbf16>
}
