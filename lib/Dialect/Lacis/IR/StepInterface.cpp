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

/// The parts of a sum that have every loop of the step that exists under no name of its own.
static SmallVector<StringRef> partsFor(StepInterface step, Nest &nest) {
  SmallVector<StringRef> found, open;
  llvm::copy_if(step.namedLoops(), std::back_inserter(open),
                [&](StringRef name) { return !name.empty() && nest.findAll(name).empty(); });
  if (!open.empty())
    llvm::copy_if(nest.parts(), std::back_inserter(found), [&](StringRef part) {
      nest.setPart(part);
      return llvm::all_of(open, [&](StringRef name) { return !nest.findAll(name).empty(); });
    });
  nest.setPart("");
  return found;
}

/// A loop that every part of a sum has is named once for all.
static LogicalResult applyToParts(const RecordedStep &recorded, Nest &nest) {
  SmallVector<StringRef> parts = partsFor(recorded.step, nest);
  if (parts.empty())
    return recorded.step.apply(nest, recorded.loc);
  LogicalResult result = success();
  for (StringRef part : parts) {
    nest.setPart(part);
    if (succeeded(result))
      result = recorded.step.apply(nest, recorded.loc);
  }
  nest.setPart("");
  return result;
}

LogicalResult lacis::applyStep(const RecordedStep &recorded, Nest &nest) {
  ScopedDiagnosticHandler tell(nest.getFunction().getContext(), [&](Diagnostic &diagnostic) {
    Diagnostic &note = diagnostic.attachNote(recorded.loc);
    note << "asked for " << recorded.step << "; loops here are ";
    llvm::interleaveComma(nest.names(), note, [&](StringRef name) { note << "'" << name << "'"; });
    return failure(); // on to whoever shows it
  });
  return applyToParts(recorded, nest);
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
