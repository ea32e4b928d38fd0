// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes of a launch as code of the kernel.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_EMITSIZE_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_EMITSIZE_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// The size, of the kernel's own arguments; i64.
mlir::Value emitSize(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel, SizeAttr size);
/// Of a batch of matrices, whose axes before the last two are one or more, the number of that at `indices`; i64.
mlir::Value emitMatrixNumber(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel, mlir::ArrayAttr shape,
                             mlir::ValueRange indices);
/// Elements before the matrix at `indices` of a batch with these strides; i64.
mlir::Value emitOffset(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel, mlir::ArrayAttr strides,
                       mlir::ValueRange indices);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_EMITSIZE_H
