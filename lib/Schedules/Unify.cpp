// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a user gave beside a rule's template: what fills its holes, what contradicts it, and what it leaves free.
#include "lacis/Schedules/ScheduleBuilder.h"

using namespace mlir;
using namespace lacis;

void ScheduleBuilder::refuse(Attribute step, const Twine &why) {
  if (refusal.empty())
    llvm::raw_string_ostream(refusal) << step << ": " << why;
}

/// The tiles of its nest are handed out in lists, or the loop is marked.
static bool isTaken(Operation *loop) {
  auto dense = dyn_cast<LoopOp>(loop);
  auto marks = cast<LoopOpInterface>(loop);
  if (marks.getUnroll() || marks.getPipeline() || (dense && isMarked(dense)))
    return true;
  Operation *top = loop;
  while (isa<LoopOp, LevelLoopOp>(top->getParentOp()))
    top = top->getParentOp();
  return top->walk([](LoopOp inner) {
              return inner.getBalance() ? WalkResult::interrupt() : WalkResult::advance();
            })
      .wasInterrupted();
}

std::string ScheduleBuilder::objectionToRest(const RecordedStep &entry) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << entry.step << ": ";
  SmallVector<StringRef> loops = entry.step.namedLoops();
  for (StepInterface step : steps)
    if (Attribute(step).getTypeID() == Attribute(entry.step).getTypeID() && step.namedLoops() == loops)
      return out << "the rule takes " << step, text;
  if (loops.empty())
    return out << "the rule takes no such step", text;
  for (StringRef name : loops) {
    SmallVector<Operation *> found = nest.findAll(name);
    if (found.empty())
      return out << "under the rule there is no loop '" << name << "'", text;
    if (llvm::any_of(found, isTaken))
      return out << "the rule has a use for loop '" << name << "'", text;
  }
  return "";
}

std::string ScheduleBuilder::addTheRest() {
  for (auto [entry, isUsed] : llvm::zip(given, used)) {
    if (isUsed || !ok || !refusal.empty())
      continue;
    if (std::string why = objectionToRest(entry); !why.empty())
      return why;
    addGiven(entry.step, entry);
  }
  return refusal;
}
