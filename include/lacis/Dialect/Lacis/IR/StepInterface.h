// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interface of schedule steps, and the default schedules that targets register.
#ifndef LACIS_DIALECT_LACIS_IR_STEPINTERFACE_H
#define LACIS_DIALECT_LACIS_IR_STEPINTERFACE_H

#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "mlir/IR/OpDefinition.h"

#include "lacis/Dialect/Lacis/IR/StepInterface.h.inc"

namespace lacis {

/// A step of a function's schedule, and the user's line.
struct RecordedStep {
  StepInterface step;
  mlir::Location loc;
};
/// The steps in `lacis.steps`, or an error for what is none. The lines ride on the function's location, as an array
/// fused into it, so that no key counts them; the function's own stands for those that are not known.
mlir::FailureOr<llvm::SmallVector<RecordedStep>> recordedSteps(mlir::func::FuncOp function);

/// Appends the steps that a nest still lacks; applies each as it is made, so that the next sees its loops.
/// `untouched`: no step has changed a coordinate loop of the main nest or what it reads, so the whole default applies;
/// otherwise the steps are a schedule of the user's, and only parallel units are given to what has none.
using CompleteFn = llvm::LogicalResult (*)(Nest &nest, llvm::SmallVectorImpl<StepInterface> &steps, bool untouched);

/// The default schedule of targets whose names begin so: a family (`cpu`, `cuda`) or an architecture (`cuda:sm_90a`).
void registerDefaultSchedule(llvm::StringRef target, CompleteFn complete);
/// That of the longest name that `target` begins with, or null.
CompleteFn lookupDefaultSchedule(llvm::StringRef target);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_STEPINTERFACE_H
