// SPDX-License-Identifier: Apache-2.0
// What a schedule step promises.

#ifndef LACIS_STEP_INTERFACE_TD
#define LACIS_STEP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Lacis_StepInterface : AttrInterface<"StepInterface"> {
  let summary = "One step of a schedule: a change of the loop nest.";
  let cppNamespace = "::lacis";
  let methods = [
    InterfaceMethod<"Changes the nest, or says at `loc` what was asked.",
                    "::llvm::LogicalResult", "apply", (ins "::lacis::Nest &":$nest, "::mlir::Location":$loc)>,
    InterfaceMethod<"Names of the loops that the step shapes or marks.",
                    "::llvm::SmallVector<::llvm::StringRef>", "namedLoops", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"This step in the place of `open`, which a rule of a default schedule would take: itself, or both in "
                    "one, where it only fills in what rules leave open, as numbers are; null where it says something else.",
                    "::mlir::Attribute", "unify", (ins "::mlir::Attribute":$open), [{}],
                    [{ return $_attr == open ? open : ::mlir::Attribute(); }]>,
    InterfaceMethod<"The step says something about sizes or operands, which is known before any loop is changed.",
                    "bool", "comesFirst", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"The letters by which `operand` is walked, or none where the step leaves that open.",
                    "::mlir::ArrayAttr", "getWalk", (ins "::llvm::StringRef":$operand), [{}], [{ return {}; }]>,
    InterfaceMethod<"The form in which levels of `operand` own the output, or none where the step leaves that open.",
                    "::llvm::StringRef", "getOwnerForm", (ins "::llvm::StringRef":$operand), [{}], [{ return {}; }]>,
    InterfaceMethod<"The one loop that the statements of a chain become, or none where the step leaves that open.",
                    "::llvm::StringRef", "getRolledLoop", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"How many columns of a stored block a round of that loop takes, or none where the step leaves that open.",
                    "std::optional<int64_t>", "getRoundColumns", (ins), [{}], [{ return std::nullopt; }]>,
    InterfaceMethod<"The statement of a chain that has a nest of its own, or none where the step leaves that open.",
                    "::llvm::StringRef", "getKeptTensor", (ins), [{}], [{ return {}; }]>
  ];
}

#endif // LACIS_STEP_INTERFACE_TD
