// SPDX-License-Identifier: Apache-2.0
// What a nest asks the bindings of a format.

#ifndef LACIS_BINDING_OPS_TD
#define LACIS_BINDING_OPS_TD

include "lacis/Dialect/Lacis/IR/LacisDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Lacis_LookupOp : Lacis_Op<"lookup", [Pure]> {
  let summary = "The coordinate of an axis that a binding stores for `coordinate`, one of its own.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$binding, Index:$coordinate);
  let results = (outs Index:$result);
  let assemblyFormat = "$tensor `[` $binding `]` `at` $coordinate attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def Lacis_SolveOp : Lacis_Op<"solve", [Pure]> {
  let summary = "The coordinate of axis `name` that a user's binding computes from `coordinate`, one of its own.";
  let arguments = (ins AnyRankedTensor:$tensor, I64Attr:$binding, I64Attr:$name, Index:$coordinate);
  let results = (outs Index:$result);
  let assemblyFormat = "$tensor `[` $binding `]` `of` $name `at` $coordinate attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

#endif // LACIS_BINDING_OPS_TD
