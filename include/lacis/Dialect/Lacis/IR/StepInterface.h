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
/// `untouched`: no step has shaped or marked a coordinate loop of the main nest, so the whole default applies;
/// otherwise the steps are a schedule of the user's, and only parallel units are given to what has none.
using CompleteFn = llvm::LogicalResult (*)(Nest &nest, llvm::SmallVectorImpl<StepInterface> &steps, bool untouched);

/// The default schedule of a family of targets (`cpu`, `cuda`).
void registerDefaultSchedule(llvm::StringRef family, CompleteFn complete);
CompleteFn lookupDefaultSchedule(llvm::StringRef family);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_STEPINTERFACE_H
