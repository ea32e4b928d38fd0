// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the lowering of levels relies on, beyond what operations verify of themselves.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_VERIFYACCESSES_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_VERIFYACCESSES_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// Tensors are arguments or made of them, levels can do what is asked of them, and values have the types of elements.
llvm::LogicalResult verifyAccesses(mlir::func::FuncOp function);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_VERIFYACCESSES_H
