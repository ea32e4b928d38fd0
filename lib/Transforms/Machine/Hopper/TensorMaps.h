// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kernel arguments that describe matrices to the copy engine: made on first use, recorded in the artifact.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_TENSORMAPS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_TENSORMAPS_H

#include "lacis/Transforms/Passes.h"

namespace lacis::hopper {

class TensorMaps {
public:
  TensorMaps(mlir::ModuleOp module, mlir::func::FuncOp function) : module(module), function(function) {}

  /// The map of the matrix behind the kernel argument `pointer`, with `shape` (sizes of rows and columns as rules, or of
  /// matrices, rows and columns), in boxes of `rows` x `columns` elements whose rows fill `columns` elements of one swizzled line; one row lies as it is.
  llvm::FailureOr<mlir::Value> get(mlir::Operation *user, mlir::Value pointer, mlir::ArrayAttr shape,
                                   mlir::Type element, int64_t rows, int64_t columns);

  /// Records that the derived array behind `pointer` has rows of `bytes` whose chunks are exchanged already.
  void exchangeChunks(mlir::Value pointer, int64_t bytes);

private:
  mlir::ModuleOp module;
  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Attribute, mlir::Value> known;
};

} // namespace lacis::hopper

#endif // LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_TENSORMAPS_H
