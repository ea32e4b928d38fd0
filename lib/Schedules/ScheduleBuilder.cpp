// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a rule makes its steps: one after another, each applied to the nest as it is made.
#include "lacis/Schedules/ScheduleBuilder.h"

#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"

using namespace mlir;
using namespace lacis;

void ScheduleBuilder::add(Attribute step) {
  if (!ok)
    return;
  for (auto [entry, isUsed] : llvm::zip(given, used))
    if (Attribute both = isUsed ? Attribute() : entry.step.unify(step)) {
      isUsed = true;
      if (addGiven(cast<StepInterface>(both), entry))
        return;
      break; // what follows needs the loops of this step
    }
  steps.push_back(cast<StepInterface>(step));
  ok = succeeded(steps.back().apply(nest, nest.getFunction().getLoc()));
}

bool ScheduleBuilder::addGiven(StepInterface step, const RecordedStep &entry) {
  std::string why;
  ScopedDiagnosticHandler listener(nest.getFunction().getContext(), [&](Diagnostic &diagnostic) {
    why = why.empty() ? diagnostic.str() : why;
    return success();
  });
  bool isApplied = succeeded(step.apply(nest, entry.loc));
  if (isApplied)
    steps.push_back(step);
  else
    refuse(entry.step, why);
  return isApplied;
}

void ScheduleBuilder::split(StringRef loop, int64_t factor) {
  add(SplitStepAttr::get(nest.getFunction().getContext(), loop, factor));
}

std::string ScheduleBuilder::fuse(ArrayRef<std::string> loops) {
  std::string fused = loops.front();
  for (const std::string &inner : loops.drop_front()) {
    add(FuseStepAttr::get(nest.getFunction().getContext(), fused, inner));
    fused += "_" + inner;
  }
  return fused;
}

void ScheduleBuilder::upto(StringRef loop, int64_t most) {
  add(UptoStepAttr::get(nest.getFunction().getContext(), loop, most));
}

void ScheduleBuilder::splitNnz(StringRef loop, int64_t factor) {
  add(SplitNnzStepAttr::get(nest.getFunction().getContext(), loop, factor, std::nullopt));
}

void ScheduleBuilder::splitParts(StringRef loop, int64_t parts) {
  add(SplitNnzStepAttr::get(nest.getFunction().getContext(), loop, std::nullopt, parts));
}

void ScheduleBuilder::apart(ArrayRef<StringRef> parts, std::optional<int64_t> least) {
  if (parts.empty())
    return;
  MLIRContext *context = nest.getFunction().getContext();
  ArrayAttr others = parts.size() > 1 ? Builder(context).getStrArrayAttr(parts.drop_front()) : ArrayAttr();
  add(ApartStepAttr::get(context, parts.front(), others, least));
}

void ScheduleBuilder::precompute(StringRef part, FormatAttr layout) {
  add(PrecomputeStepAttr::get(nest.getFunction().getContext(), part, layout));
}

void ScheduleBuilder::reorder(ArrayRef<std::string> loops) {
  MLIRContext *context = nest.getFunction().getContext();
  SmallVector<StringRef> names(loops.begin(), loops.end());
  add(ReorderStepAttr::get(context, Builder(context).getStrArrayAttr(names)));
}

std::string lacis::strategyFor(LoopOp loop, Nest &nest, StringRef unit) {
  auto addsAtomically = [](WriteOp write) { return write.getAtomic() ? WalkResult::interrupt() : WalkResult::advance(); };
  if (loop->walk(addsAtomically).wasInterrupted())
    return "atomic";
  for (StringRef name : {"order", "atomic"})
    if ((name == "order" || unit != "parallel") && findRaceStrategy(name)->objection(loop, nest).empty())
      return name.str();
  return "";
}

void ScheduleBuilder::bind(StringRef loop, StringRef unit) {
  MLIRContext *context = nest.getFunction().getContext();
  if (LoopOp found = nest.find(loop); found && found.getMeets() && !found.getRace())
    if (std::string strategy = strategyFor(found, nest, unit); !strategy.empty())
      race(loop, strategy);
  add(unit == "parallel" ? Attribute(ParallelStepAttr::get(context, loop)) : BindStepAttr::get(context, loop, unit));
}

void ScheduleBuilder::race(StringRef loop, StringRef strategy) {
  add(RaceStepAttr::get(nest.getFunction().getContext(), loop, strategy));
}

void ScheduleBuilder::vectorize(StringRef loop, int64_t width) {
  add(VectorizeStepAttr::get(nest.getFunction().getContext(), loop, width));
}

void ScheduleBuilder::jam(StringRef loop) { add(JamStepAttr::get(nest.getFunction().getContext(), loop)); }

void ScheduleBuilder::unroll(StringRef loop, int64_t factor, std::optional<int64_t> sums) {
  add(UnrollStepAttr::get(nest.getFunction().getContext(), loop, factor, sums));
}

void ScheduleBuilder::relayout(StringRef operand, FormatAttr layout) {
  add(RelayoutStepAttr::get(nest.getFunction().getContext(), operand, layout));
}

void ScheduleBuilder::computeAt(StringRef operand, StringRef loop) {
  add(ComputeAtStepAttr::get(nest.getFunction().getContext(), operand, loop));
}

void ScheduleBuilder::regroup(StringRef operand, FormatAttr layout, std::optional<int64_t> capacity) {
  add(RegroupStepAttr::get(nest.getFunction().getContext(), operand, layout, capacity));
}

void ScheduleBuilder::balance(StringRef loop, int64_t raster, int64_t groups, std::optional<int64_t> within,
                              std::optional<int64_t> cut, std::optional<int64_t> parts) {
  add(BalanceStepAttr::get(nest.getFunction().getContext(), loop, raster, groups, within, cut, parts));
}

void ScheduleBuilder::stage(StringRef operand, StringRef place) {
  add(StageStepAttr::get(nest.getFunction().getContext(), operand, place, StringAttr()));
}

void ScheduleBuilder::pipeline(StringRef loop, int64_t stages) {
  add(PipelineStepAttr::get(nest.getFunction().getContext(), loop, stages));
}

void ScheduleBuilder::tensorize(ArrayRef<std::string> loops, StringRef kind) {
  MLIRContext *context = nest.getFunction().getContext();
  SmallVector<StringRef> names(loops.begin(), loops.end());
  add(TensorizeStepAttr::get(context, Builder(context).getStrArrayAttr(names),
                             kind.empty() ? StringAttr() : StringAttr::get(context, kind)));
}
