// SPDX-License-Identifier: Apache-2.0
// Passes between the dialect and upstream dialects that say the same.

#ifndef LACIS_CONVERSION_PASSES_TD
#define LACIS_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def LacisImportSparseTensor : Pass<"lacis-import-sparse-tensor", "::mlir::ModuleOp"> {
  let summary = "Turns `sparse_tensor` encodings of tensor types into formats.";
  let description = [{
    Refuses what a format cannot say: slices, explicit and implicit values, singleton levels that are not
    stored as a structure of arrays.
  }];
  let dependentDialects = ["::lacis::LacisDialect"];
}

def LacisExportSparseTensor : Pass<"lacis-export-sparse-tensor", "::mlir::ModuleOp"> {
  let summary = "Turns formats of tensor types into `sparse_tensor` encodings.";
  let description = [{
    Refuses, by name, what an encoding cannot say: packed and padded levels, fused digits, nested blocks, links,
    bindings, sums, and widths that differ between levels.
  }];
  let dependentDialects = ["::mlir::sparse_tensor::SparseTensorDialect"];
}

#endif // LACIS_CONVERSION_PASSES_TD
