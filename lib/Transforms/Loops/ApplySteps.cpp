// SPDX-License-Identifier: Apache-2.0
/// \file
/// Applies the recorded steps, then the default ones that are missing, and records them all.
#include "../Stages.h"
#include "lacis/Dialect/Lacis/IR/StepInterface.h"
#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"
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
    Nest nest(getOperation());
    if (!nest.mainChain().empty() && !hasReached(getOperation(), "loops") && failed(run(nest)))
      signalPassFailure();
  }

private:
  /// Parallel units whose iterations meet in one element of the output say how they are brought together.
  static LogicalResult checkRaces(Nest &nest) {
    LogicalResult result = success();
    nest.getFunction().walk([&](LoopOp loop) {
      if (loop.getBind() && loop.getMeets() && !loop.getRace())
        result = loop.emitError("race: iterations of loop '")
                 << loop.getName() << "' meet in one element of the output, and it is bound to '"
                 << stringifyParallelUnit(*loop.getBind())
                 << "'; race with a strategy brings them together; here would do " << strategiesFor(loop, nest);
    });
    return result;
  }

  LogicalResult run(Nest &nest) {
    func::FuncOp function = getOperation();
    FailureOr<SmallVector<RecordedStep>> recorded = recordedSteps(function);
    if (failed(recorded))
      return failure();
    for (const RecordedStep &entry : *recorded)
      if (entry.step.comesFirst() && failed(applyStep(entry, nest)))
        return failure();
    SmallVector<StepInterface> owners;
    if (auto chosen = function->removeAttr("lacis.owners"))
      llvm::append_range(owners, cast<ArrayAttr>(chosen).getAsRange<StepInterface>());
    CompleteFn complete = lookupDefaultSchedule(target);
    if (!complete)
      return function.emitError("no default schedule for target '") << target << "'";
    FailureOr<SmallVector<StepInterface>> steps = complete(nest, {*recorded, owners, target});
    if (failed(steps))
      return failure();
    if (failed(checkRaces(nest)))
      return failure();
    if (function.walk([](LoopOp loop) { return WalkResult(failure(loop.getBalance().has_value())); }).wasInterrupted())
      function->setAttr("lacis.cost", CostAttr::of(&getContext(), target)); // work lists follow it
    SmallVector<Attribute> all(steps->begin(), steps->end());
    function->setAttr("lacis.steps", Builder(&getContext()).getArrayAttr(all));
    return success();
  }
};

} // namespace
