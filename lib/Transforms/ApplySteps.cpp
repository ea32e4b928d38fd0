// SPDX-License-Identifier: Apache-2.0
/// \file
/// Applies the recorded steps, then the default ones that are missing, and records them all.
#include "Stages.h"
#include "lacis/Dialect/Lacis/IR/StepInterface.h"
#include "lacis/Transforms/Passes.h"

namespace lacis {
#define GEN_PASS_DEF_LACISAPPLYSTEPS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

/// The user's line of step `number`: it rides on the function's location, which no key counts.
Location locationOf(func::FuncOp function, size_t number, size_t count) {
  auto fused = dyn_cast<FusedLoc>(function.getLoc());
  auto lines = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  if (!lines || lines.size() != count)
    return function.getLoc();
  auto line = dyn_cast<LocationAttr>(lines[number]);
  return line && !isa<UnknownLoc>(line) ? Location(line) : function.getLoc();
}

struct ApplySteps : lacis::impl::LacisApplyStepsBase<ApplySteps> {
  using LacisApplyStepsBase::LacisApplyStepsBase;

  void runOnOperation() override {
    Nest nest(getOperation());
    if (!nest.mainChain().empty() && !hasReached(getOperation(), "loops") && failed(run(nest)))
      signalPassFailure();
  }

private:
  /// One step; what it refuses is told with what was asked and the loops that exist.
  LogicalResult applyAt(StepInterface step, Nest &nest, Location loc) {
    ScopedDiagnosticHandler tell(&getContext(), [&](Diagnostic &diagnostic) {
      Diagnostic &note = diagnostic.attachNote(loc);
      note << "asked for " << step << "; loops here are ";
      llvm::interleaveComma(nest.names(), note, [&](StringRef name) { note << "'" << name << "'"; });
      return failure(); // on to whoever shows it
    });
    for (StringRef name : step.namedLoops())
      if (LoopOp loop = nest.find(name); loop && llvm::is_contained(nest.mainChain(), loop))
        untouched = false;
    return step.apply(nest, loc);
  }

  LogicalResult run(Nest &nest) {
    func::FuncOp function = getOperation();
    SmallVector<StepInterface> steps;
    auto recorded = function->getAttrOfType<ArrayAttr>("lacis.steps");
    for (Attribute attr : recorded ? recorded.getValue() : ArrayRef<Attribute>()) {
      auto step = dyn_cast<StepInterface>(attr);
      if (!step)
        return function.emitError("steps: ") << attr << " is not a step of a schedule";
      steps.push_back(step);
    }
    untouched = true;
    size_t count = steps.size();
    for (bool first : {true, false})
      for (size_t number = 0; number < count; ++number)
        if (steps[number].comesFirst() == first)
          if (failed(applyAt(steps[number], nest, locationOf(function, number, count))))
            return failure();
    CompleteFn complete = lookupDefaultSchedule(target);
    if (!complete)
      return function.emitError("no default schedule for target '") << target << "'";
    if (failed(complete(nest, steps, untouched)))
      return failure();
    SmallVector<Attribute> all(steps.begin(), steps.end());
    function->setAttr("lacis.steps", Builder(&getContext()).getArrayAttr(all));
    return success();
  }

  bool untouched = true;
};

} // namespace
