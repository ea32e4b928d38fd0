// SPDX-License-Identifier: Apache-2.0
/// \file
/// The stages of a module, in order.
#ifndef LACIS_LIB_TRANSFORMS_STAGES_H
#define LACIS_LIB_TRANSFORMS_STAGES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"

namespace lacis {

constexpr llvm::StringLiteral kStageNames[] = {"lacis", "loops", "tiles", "buffers", "target"};

/// The module around `op` says that it has reached `stage` or a later one: a pipeline has nothing left to do there.
inline bool hasReached(mlir::Operation *op, llvm::StringRef stage) {
  auto module = llvm::isa<mlir::ModuleOp>(op) ? llvm::cast<mlir::ModuleOp>(op) : op->getParentOfType<mlir::ModuleOp>();
  auto mark = module ? module->getAttrOfType<mlir::StringAttr>("lacis.stage") : nullptr;
  return mark && llvm::find(kStageNames, mark.getValue()) >= llvm::find(kStageNames, stage);
}

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_STAGES_H
