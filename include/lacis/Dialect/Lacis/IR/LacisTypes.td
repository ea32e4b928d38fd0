// SPDX-License-Identifier: Apache-2.0
// The pattern of a sparse tensor: which entries exist, apart from their values.

#ifndef LACIS_TYPES_TD
#define LACIS_TYPES_TD

include "lacis/Dialect/Lacis/IR/LacisDialect.td"

def Lacis_PatternType : TypeDef<Lacis_Dialect, "Pattern"> {
  let mnemonic = "pattern";
  let summary = "The structure of a sparse tensor without its values.";
  let description = [{
    ```mlir
    func.func private @mask(!lacis.pattern<?x64, #lacis.format<(i, j) -> (i : dense, j : compressed)>>)
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Attribute":$format);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // LACIS_TYPES_TD
