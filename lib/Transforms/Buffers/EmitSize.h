// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes of a launch as code of the kernel.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_EMITSIZE_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_EMITSIZE_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// The size, of the kernel's own arguments; i64.
mlir::Value emitSize(mlir::OpBuilder &b, mlir::Location loc, mlir::func::FuncOp kernel, SizeAttr size);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_EMITSIZE_H
