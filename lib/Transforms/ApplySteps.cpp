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

struct ApplySteps : lacis::impl::LacisApplyStepsBase<ApplySteps> {
  using LacisApplyStepsBase::LacisApplyStepsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    Nest nest(function);
    if (nest.mainChain().empty() || hasReached(function, "loops"))
      return;
    SmallVector<StepInterface> steps;
    if (auto recorded = function->getAttrOfType<ArrayAttr>("lacis.steps"))
      for (Attribute attr : recorded) {
        auto step = dyn_cast<StepInterface>(attr);
        if (!step) {
          function.emitError("steps: ") << attr << " is not a step of a schedule";
          return signalPassFailure();
        }
        steps.push_back(step);
        if (failed(step.apply(nest, function.getLoc())))
          return signalPassFailure();
      }
    // A schedule is complete as written, or empty.
    if (steps.empty()) {
      CompleteFn complete = lookupDefaultSchedule(target);
      if (!complete) {
        function.emitError("no default schedule for target '") << target << "'";
        return signalPassFailure();
      }
      if (failed(complete(nest, steps)))
        return signalPassFailure();
    }
    function->setAttr("lacis.steps", Builder(&getContext()).getArrayAttr(SmallVector<Attribute>(steps.begin(), steps.end())));
  }
};

} // namespace
