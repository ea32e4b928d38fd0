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

/// Applies one step, in each part of a sum where it names a loop that all have. What it refuses is told with what was asked
/// and the loops that exist.
llvm::LogicalResult applyStep(const RecordedStep &recorded, Nest &nest);

/// What a user has said of a nest, and for which target.
struct Recorded {
  llvm::ArrayRef<RecordedStep> steps;   // those that come first are applied
  llvm::ArrayRef<StepInterface> owners; // chosen before there were loops
  llvm::StringRef target;
};

/// Applies what a user has recorded, completes it by what the nest still lacks, and answers all steps in their order.
using CompleteFn = llvm::FailureOr<llvm::SmallVector<StepInterface>> (*)(Nest &nest, const Recorded &recorded);

/// The default schedule of targets whose names begin so: a family (`cpu`, `cuda`) or an architecture (`cuda:sm_90a`).
void registerDefaultSchedule(llvm::StringRef target, CompleteFn complete);
/// That of the longest name that `target` begins with, or null.
CompleteFn lookupDefaultSchedule(llvm::StringRef target);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_STEPINTERFACE_H
