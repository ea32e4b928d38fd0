// SPDX-License-Identifier: Apache-2.0
/// \file
/// Dense temporaries: their layout, and how they are made.
#ifndef LACIS_DIALECT_LACIS_IR_WORKSPACE_H
#define LACIS_DIALECT_LACIS_IR_WORKSPACE_H

#include "lacis/Dialect/Lacis/IR/LacisOps.h"

namespace lacis {

/// So many axes in dense levels, in this order of the axes, or in their own.
FormatAttr denseLayout(mlir::MLIRContext *context, unsigned rank, llvm::ArrayRef<unsigned> order = {});

/// A dense tensor with one axis for each size.
WorkspaceOp makeWorkspace(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element, mlir::ValueRange sizes,
                          llvm::ArrayRef<unsigned> order = {});

/// One of these extents inside of a nest, which a thread has to itself, or a block.
WorkspaceOp makeTile(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element, llvm::ArrayRef<int64_t> extents,
                     WorkspacePlace place = WorkspacePlace::Private, llvm::ArrayRef<unsigned> order = {});

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_WORKSPACE_H
