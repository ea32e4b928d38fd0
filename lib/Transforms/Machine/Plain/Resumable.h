// SPDX-License-Identifier: Apache-2.0
/// \file
/// A role as a function that stops at each place of the ring that it hands over, and goes on from there when it is
/// called again.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_PLAIN_RESUMABLE_H
#define LACIS_LIB_TRANSFORMS_MACHINE_PLAIN_RESUMABLE_H

#include "lacis/Transforms/Passes.h"

namespace lacis::plain {

/// The function takes `operands` and its frame: memory that keeps what it has to know when it goes on. A frame that
/// begins with a 32-bit 0 starts the role anew.
struct Resumable {
  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::Value> operands;
  int64_t frameBytes = 0;
};

/// Moves `role`, which has no arguments, out of `kernel`.
llvm::FailureOr<Resumable> makeResumable(mlir::func::FuncOp kernel, mlir::Region &role);

} // namespace lacis::plain

#endif // LACIS_LIB_TRANSFORMS_MACHINE_PLAIN_RESUMABLE_H
