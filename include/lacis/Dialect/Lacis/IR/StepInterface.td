// SPDX-License-Identifier: Apache-2.0
// What a schedule step promises.

#ifndef LACIS_STEP_INTERFACE_TD
#define LACIS_STEP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Lacis_StepInterface : AttrInterface<"StepInterface"> {
  let summary = "One step of a schedule: a change of the loop nest.";
  let cppNamespace = "::lacis";
  let methods = [
    InterfaceMethod<"Changes the nest, or says at `loc` what was asked and which loops exist.",
                    "::llvm::LogicalResult", "apply", (ins "::lacis::Nest &":$nest, "::mlir::Location":$loc)>
  ];
}

#endif // LACIS_STEP_INTERFACE_TD
