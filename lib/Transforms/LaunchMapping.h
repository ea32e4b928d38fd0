// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the mappings of all targets share: one function a nest, and the flat number of a unit.
#ifndef LACIS_LIB_TRANSFORMS_LAUNCHMAPPING_H
#define LACIS_LIB_TRANSFORMS_LAUNCHMAPPING_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// One function for each nest of the module's kernel, named kernel_0, kernel_1, …; the kernel goes.
llvm::FailureOr<llvm::SmallVector<mlir::func::FuncOp>> outlineNests(mlir::ModuleOp module);

/// The loops of `function` that are bound to one of `units`, outermost first.
llvm::SmallVector<mlir::scf::ForOp> boundLoops(mlir::func::FuncOp function, llvm::ArrayRef<llvm::StringRef> units);

/// The product of the loops' sizes, as factors of the launch record.
mlir::ArrayAttr productOfSizes(mlir::Builder &b, llvm::ArrayRef<mlir::scf::ForOp> loops);

/// Splits the flat `unit` into the coordinates of `loops` (the last runs fastest), in their index type.
llvm::SmallVector<mlir::Value> decodeUnit(mlir::OpBuilder &b, mlir::Location loc, mlir::Value unit,
                                          llvm::ArrayRef<mlir::scf::ForOp> loops);

/// Replaces a bound loop by its body at one coordinate.
void inlineLoop(mlir::scf::ForOp loop, mlir::Value coordinate);

/// Sets the launches of the module's artifact.
void recordLaunches(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> launches);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LAUNCHMAPPING_H
