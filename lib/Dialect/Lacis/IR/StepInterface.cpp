// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interface of schedule steps, and the default schedules that targets register.
#include "lacis/Dialect/Lacis/IR/StepInterface.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace lacis;

#include "lacis/Dialect/Lacis/IR/StepInterface.cpp.inc"

FailureOr<SmallVector<RecordedStep>> lacis::recordedSteps(func::FuncOp function) {
  SmallVector<RecordedStep> steps;
  auto recorded = function->getAttrOfType<ArrayAttr>("lacis.steps");
  if (!recorded)
    return steps;
  auto fused = dyn_cast<FusedLoc>(function.getLoc());
  auto lines = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  for (auto [number, attr] : llvm::enumerate(recorded)) {
    auto step = dyn_cast<StepInterface>(attr);
    if (!step)
      return function.emitError("steps: ") << attr << " is not a step of a schedule";
    auto line = lines && lines.size() == recorded.size() ? dyn_cast<LocationAttr>(lines[number]) : LocationAttr();
    steps.push_back({step, line && !isa<UnknownLoc>(line) ? Location(line) : function.getLoc()});
  }
  return steps;
}

static llvm::StringMap<CompleteFn> &schedules() {
  static llvm::StringMap<CompleteFn> map;
  return map;
}

void lacis::registerDefaultSchedule(llvm::StringRef target, CompleteFn complete) { schedules()[target] = complete; }

CompleteFn lacis::lookupDefaultSchedule(llvm::StringRef target) {
  llvm::StringRef best;
  CompleteFn found = nullptr;
  for (const auto &entry : schedules())
    if (target.starts_with(entry.first()) && (!found || entry.first().size() > best.size())) {
      best = entry.first();
      found = entry.second;
    }
  return found;
}
