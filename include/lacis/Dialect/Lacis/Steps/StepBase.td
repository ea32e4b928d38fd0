// SPDX-License-Identifier: Apache-2.0
// What the declaration of a schedule step begins with, here or outside of the core.

#ifndef LACIS_STEP_BASE_TD
#define LACIS_STEP_BASE_TD

include "lacis/Dialect/Lacis/IR/LacisDialect.td"
include "lacis/Dialect/Lacis/IR/StepInterface.td"
include "mlir/IR/AttrTypeBase.td"

/// `methods` are those of the interface that the step answers itself; `apply` and `namedLoops` always.
class Lacis_Step<string name, string stepMnemonic, list<string> methods = []>
    : AttrDef<Lacis_Dialect, name # "Step",
              [DeclareAttrInterfaceMethods<Lacis_StepInterface, !listconcat(["namedLoops"], methods)>]> {
  let mnemonic = stepMnemonic;
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif // LACIS_STEP_BASE_TD
