// SPDX-License-Identifier: Apache-2.0
// A binding of a format: a name for a coordinate computed from the axes.

#ifndef LACIS_BINDING_INTERFACE_TD
#define LACIS_BINDING_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Lacis_BindingInterface : AttrInterface<"BindingInterface"> {
  let cppNamespace = "::lacis";
  let description = [{
    `sizes` and `known` have an element for each name of the format: the axes, then the bindings.
  }];
  let methods = [
    InterfaceMethod<"The bound name.", "::mlir::StringAttr", "getName">,
    InterfaceMethod<"The word for messages.", "std::string", "getMnemonic", (ins),
      [{ return ConcreteAttr::getMnemonic().str(); }]>,
    InterfaceMethod<"Prints what stands behind `name =`.", "void", "printValue",
      (ins "::mlir::AsmPrinter &":$printer, "::llvm::ArrayRef<::mlir::StringAttr>":$names)>,
    InterfaceMethod<"The axes that follow once the axes (and bindings) in `known` and this binding are known.",
      "::llvm::SmallVector<unsigned>", "determines", (ins "::llvm::ArrayRef<bool>":$known),
      "", [{ return {}; }]>,
    InterfaceMethod<"The names that it is computed from.", "::llvm::SmallVector<unsigned>", "getOperands">,
    InterfaceMethod<"The operation that defines a user's own; null for the others.", "::mlir::FlatSymbolRefAttr",
      "getDefinition", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"The binding that knows what the operation says of it.", "::mlir::Attribute", "withFacts",
      (ins "::mlir::DictionaryAttr":$facts), "", [{ return $_attr; }]>,
    InterfaceMethod<"Loops can find what follows from it.", "bool", "hasCode", (ins), "", [{ return true; }]>,
    InterfaceMethod<"A place among others: no axis follows from it.", "bool", "isPosition", (ins), "",
      [{ return false; }]>,
    InterfaceMethod<"The array that holds the coordinate of an axis for each of its own; empty where there is none.",
      "::llvm::StringRef", "getArray", (ins), "", [{ return ""; }]>,
    InterfaceMethod<"The name of whose coordinates it has each once, in another order.",
      "std::optional<unsigned>", "getPermuted", (ins), "", [{ return std::nullopt; }]>,
    InterfaceMethod<"The name that has as many coordinates.", "std::optional<unsigned>", "getSizeName", (ins), "",
      [{ return std::nullopt; }]>,
    InterfaceMethod<"How many coordinates it has, by the sizes of the names before it; null where only data are known by it.",
      "::mlir::Value", "emitSize",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc, "::llvm::ArrayRef<::mlir::Value>":$sizes), "",
      [{ std::optional<unsigned> same = $_attr.getSizeName(); return same ? sizes[*same] : ::mlir::Value(); }]>,
    InterfaceMethod<"The coordinate of what follows from it, which may lie outside of the axis.", "::mlir::Value",
      "emitSolve", (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc, "const ::lacis::BoundName &":$bound,
                        "::llvm::ArrayRef<::mlir::Value>":$known, "::llvm::ArrayRef<::mlir::Value>":$sizes), "",
      [{ return {}; }]>,
  ];
}

#endif // LACIS_BINDING_INTERFACE_TD
