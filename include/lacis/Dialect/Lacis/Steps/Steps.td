// SPDX-License-Identifier: Apache-2.0
// Schedule steps: one attribute a verb.

#ifndef LACIS_STEPS_TD
#define LACIS_STEPS_TD

include "lacis/Dialect/Lacis/IR/LacisDialect.td"
include "lacis/Dialect/Lacis/IR/StepInterface.td"
include "mlir/IR/AttrTypeBase.td"

class Lacis_Step<string name, string stepMnemonic>
    : AttrDef<Lacis_Dialect, name # "Step", [DeclareAttrInterfaceMethods<Lacis_StepInterface>]> {
  let mnemonic = stepMnemonic;
}

def Lacis_SplitStep : Lacis_Step<"Split", "split"> {
  let summary = "for i in n  -->  for i0 in ceil(n / factor): for i1 in factor";
  let parameters = (ins StringRefParameter<>:$loop, "int64_t":$factor);
  let assemblyFormat = "`<` $loop `,` $factor `>`";
}

def Lacis_ReorderStep : Lacis_Step<"Reorder", "reorder"> {
  let summary = "for i: for j  -->  for j: for i";
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$loops);
  let assemblyFormat = "`<` $loops `>`";
}

def Lacis_BindStep : Lacis_Step<"Bind", "bind"> {
  let summary = "The loop runs on a parallel unit: parallel, block.x, warp, lane, thread.x.";
  let parameters = (ins StringRefParameter<>:$loop, StringRefParameter<>:$unit);
  let assemblyFormat = "`<` $loop `,` $unit `>`";
}

def Lacis_VectorizeStep : Lacis_Step<"Vectorize", "vectorize"> {
  let summary = "The loop becomes the lanes of one vector.";
  let parameters = (ins StringRefParameter<>:$loop, "int64_t":$width);
  let assemblyFormat = "`<` $loop `,` $width `>`";
}

def Lacis_JamStep : Lacis_Step<"Jam", "jam"> {
  let summary = "The loop is unrolled and its copies share the loops inside.";
  let parameters = (ins StringRefParameter<>:$loop);
  let assemblyFormat = "`<` $loop `>`";
}

def Lacis_UnrollStep : Lacis_Step<"Unroll", "unroll"> {
  let summary = "The innermost loops over positions and digits run `factor` rounds at once.";
  let parameters = (ins StringRefParameter<>:$loop, "int64_t":$factor);
  let assemblyFormat = "`<` $loop `,` $factor `>`";
}

def Lacis_RelayoutStep : Lacis_Step<"Relayout", "relayout"> {
  let summary = "The nest reads a copy of the operand in another dense layout, made in workspace.";
  let parameters = (ins StringRefParameter<>:$operand, "::mlir::Attribute":$layout);
  let assemblyFormat = "`<` $operand `,` $layout `>`";
}

#endif // LACIS_STEPS_TD
