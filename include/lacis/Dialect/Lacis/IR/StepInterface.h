// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interface of schedule steps, and the default schedules that targets register.
#ifndef LACIS_DIALECT_LACIS_IR_STEPINTERFACE_H
#define LACIS_DIALECT_LACIS_IR_STEPINTERFACE_H

#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "mlir/IR/OpDefinition.h"

#include "lacis/Dialect/Lacis/IR/StepInterface.h.inc"

namespace lacis {

/// Appends the steps that a nest still lacks; applies each as it is made, so that the next sees its loops.
using CompleteFn = llvm::LogicalResult (*)(Nest &nest, llvm::SmallVectorImpl<StepInterface> &steps);

/// The default schedule of a family of targets (`cpu`, `cuda`).
void registerDefaultSchedule(llvm::StringRef family, CompleteFn complete);
CompleteFn lookupDefaultSchedule(llvm::StringRef family);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_STEPINTERFACE_H
