// SPDX-License-Identifier: Apache-2.0
// A binding of a format: a name for a coordinate computed from the axes.

#ifndef LACIS_BINDING_INTERFACE_TD
#define LACIS_BINDING_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Lacis_BindingInterface : AttrInterface<"BindingInterface"> {
  let cppNamespace = "::lacis";
  let methods = [
    InterfaceMethod<"The bound name.", "::mlir::StringAttr", "getName">,
    InterfaceMethod<"The word for messages.", "std::string", "getMnemonic", (ins),
      [{ return ConcreteAttr::getMnemonic().str(); }]>,
    InterfaceMethod<"Prints what stands behind `name =`.", "void", "printValue",
      (ins "::mlir::AsmPrinter &":$printer, "::llvm::ArrayRef<::mlir::StringAttr>":$names)>,
    InterfaceMethod<"The axes that follow once the axes (and bindings) in `known` and this binding are known.",
      "::llvm::SmallVector<unsigned>", "determines", (ins "::llvm::ArrayRef<bool>":$known),
      "", [{ return {}; }]>,
  ];
}

#endif // LACIS_BINDING_INTERFACE_TD
