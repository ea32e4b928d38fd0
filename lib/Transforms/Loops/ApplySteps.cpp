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
  /// The step changes the main nest: its coordinate loops, or what they read.
  static bool touchesMain(StepInterface step, Nest &nest) {
    SmallVector<LoopOp> chain = nest.mainChain();
    SmallVector<StringRef> names = step.namedLoops();
    return !step.comesFirst() && (names.empty() || llvm::any_of(chain, [&](LoopOp loop) {
             return llvm::is_contained(names, loop.getName());
           }));
  }

  /// The parts of a sum that have every loop of the step that exists under no name of its own.
  static SmallVector<StringRef> partsFor(StepInterface step, Nest &nest) {
    SmallVector<StringRef> found, open;
    llvm::copy_if(step.namedLoops(), std::back_inserter(open),
                  [&](StringRef name) { return !name.empty() && nest.findAll(name).empty(); });
    if (!open.empty())
      llvm::copy_if(nest.parts(), std::back_inserter(found), [&](StringRef part) {
        return llvm::all_of(open, [&](StringRef name) { return !nest.findAll(nameInPart(part, name)).empty(); });
      });
    return found;
  }

  /// A loop that every part of a sum has is named once for all.
  static LogicalResult applyToParts(StepInterface step, Nest &nest, Location loc) {
    SmallVector<StringRef> parts = partsFor(step, nest);
    if (parts.empty())
      return step.apply(nest, loc);
    LogicalResult result = success();
    for (StringRef part : parts) {
      nest.setPart(part);
      if (succeeded(result))
        result = step.apply(nest, loc);
    }
    nest.setPart("");
    return result;
  }

  /// One step; what it refuses is told with what was asked and the loops that exist.
  LogicalResult applyAt(StepInterface step, Nest &nest, Location loc) {
    ScopedDiagnosticHandler tell(&getContext(), [&](Diagnostic &diagnostic) {
      Diagnostic &note = diagnostic.attachNote(loc);
      note << "asked for " << step << "; loops here are ";
      llvm::interleaveComma(nest.names(), note, [&](StringRef name) { note << "'" << name << "'"; });
      return failure(); // on to whoever shows it
    });
    auto nests = [&] { return llvm::range_size(nest.getFunction().getBody().getOps<LoopOp>()); };
    auto before = nests();
    untouched &= !touchesMain(step, nest);
    LogicalResult result = applyToParts(step, nest, loc);
    untouched &= nests() == before;
    return result;
  }

  /// Parallel units whose iterations meet in one element of the output say how they are brought together.
  static LogicalResult checkRaces(Nest &nest) {
    LogicalResult result = success();
    nest.getFunction().walk([&](LoopOp loop) {
      if (loop.getBind() && loop->hasAttr("lacis.meets") && !loop->hasAttr("lacis.race"))
        result = loop.emitError("race: iterations of loop '")
                 << loop.getName() << "' meet in one element of the output, and it is bound to '" << *loop.getBind()
                 << "'; race with a strategy brings them together; here would do " << strategiesFor(loop, nest);
    });
    return result;
  }

  LogicalResult run(Nest &nest) {
    func::FuncOp function = getOperation();
    FailureOr<SmallVector<RecordedStep>> recorded = recordedSteps(function);
    if (failed(recorded))
      return failure();
    for (bool first : {true, false})
      for (const RecordedStep &entry : *recorded)
        if (entry.step.comesFirst() == first && failed(applyAt(entry.step, nest, entry.loc)))
          return failure();
    auto steps = llvm::map_to_vector(*recorded, [](const RecordedStep &entry) { return entry.step; });
    if (auto owners = function->removeAttr("lacis.owners")) // chosen before there were loops
      llvm::append_range(steps, cast<ArrayAttr>(owners).getAsRange<StepInterface>());
    CompleteFn complete = lookupDefaultSchedule(target);
    if (!complete)
      return function.emitError("no default schedule for target '") << target << "'";
    if (failed(complete(nest, steps, untouched)))
      return failure();
    if (failed(checkRaces(nest)))
      return failure();
    if (function.walk([](LoopOp loop) { return WalkResult(failure(loop->hasAttr("lacis.balance"))); }).wasInterrupted())
      function->setAttr("lacis.cost", CostAttr::of(&getContext(), target)); // work lists follow it
    SmallVector<Attribute> all(steps.begin(), steps.end());
    function->setAttr("lacis.steps", Builder(&getContext()).getArrayAttr(all));
    return success();
  }

  bool untouched = true;
};

} // namespace
