// SPDX-License-Identifier: Apache-2.0
// Derived arrays: what a kernel walks beyond a format's own arrays, as a function of them.

#ifndef LACIS_DERIVED_INTERFACE_TD
#define LACIS_DERIVED_INTERFACE_TD

include "mlir/IR/OpBase.td"

def Lacis_DerivedInterface : AttrInterface<"DerivedInterface"> {
  let cppNamespace = "::lacis";
  let description = [{
    The mnemonic is the name of the function in `lacis.patterns.functions` that makes the arrays, the parameters are its
    arguments. An artifact lists both, and a launch checks dtype and sizes of each array that the kernel takes.
  }];
  let methods = [
    InterfaceMethod<"The name of the function.", "std::string", "getFunction", (ins),
      [{ return ConcreteAttr::getMnemonic().str(); }]>,
    InterfaceMethod<"The parameters that are given: numbers, texts of formats, and costs by name.",
      "::mlir::DictionaryAttr", "getParameters">,
    InterfaceMethod<"Appends the arrays that are made from `source`, in order; see `arraysOf`.", "void", "listArrays",
      (ins "const ::lacis::DerivedSource &":$source, "::llvm::SmallVectorImpl<::lacis::DerivedArray> &":$arrays)>,
    InterfaceMethod<"How many lists each worker has; 0 where the arrays are no work lists.", "int64_t", "getLists", (ins),
      "", [{ return 0; }]>,
  ];
}

#endif // LACIS_DERIVED_INTERFACE_TD
