// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nests that write all rows before those that an operand lists, or finish them behind those, on a CPU: runs of
/// neighbours, in vectors; or in strips of the list.
#include "Facts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

/// Elements that one thread writes at once along the last axis, in vectors of so many: alone, or in so many rows of the
/// axis before it. A call costs about as much as 50 vectors, and rows may be short.
static constexpr int64_t kRun = 1024, kRunOfRows = 128, kRows = 16, kVector = 16;

/// Listed rows of a strip: where one row of twenty is listed, their 20 KB of the output stay in the first-level cache.
static constexpr int64_t kStrip = 256;

bool lacis::runsOverList(Nest &nest) {
  func::FuncOp function = nest.getFunction();
  return function.getArgAttr(function.getNumArguments() - 1, "lacis.listed") != nullptr;
}

std::string lacis::edgesOfShares(Nest &nest) {
  for (auto size : nest.getFunction().getBody().getOps<arith::ConstantIndexOp>())
    if (auto name = size->getAttrOfType<StringAttr>("lacis.share"))
      return prefixOf(name.getValue());
  return "";
}

static void scheduleRuns(ScheduleBuilder &schedule, LoopOp top) {
  SmallVector<LoopOp> chain = perfectChain(top);
  if (llvm::any_of(chain, isMarked))
    return;
  SmallVector<std::string> names = llvm::map_to_vector(chain, [](LoopOp loop) { return loop.getName().str(); });
  std::string run = names.back();
  schedule.split(run, names.size() == 1 ? kRun : kRunOfRows);
  schedule.split(run + "1", kVector);
  schedule.vectorize(run + "11", kVector);
  if (names.size() == 1)
    return;
  std::string rows = names[names.size() - 2];
  schedule.split(rows, kRows);
  schedule.reorder({rows + "0", run + "0", rows + "1"});
}

void lacis::scheduleList(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  func::FuncOp function = nest.getFunction();
  SmallVector<LoopOp> chain = nest.mainChain();
  LoopOp rows = chain.front();
  if (chain.size() != 1 || isMarked(rows) || rows.getTrip() || !objectionToListStrips(rows).empty())
    return;
  std::string name = rows.getName().str();
  schedule.split(name, kStrip);
  schedule.computeAt(function.getArgAttrOfType<StringAttr>(function.getNumArguments() - 1, "lacis.name").getValue(),
                     name + "0");
}

void lacis::scheduleUnlisted(ScheduleBuilder &schedule) {
  SmallVector<LoopOp> nests;
  for (LoopOp loop : schedule.getNest().getFunction().getBody().getOps<LoopOp>())
    if (loop.getUnlisted() || loop.getFinishes())
      nests.push_back(loop);
  for (LoopOp top : nests)
    scheduleRuns(schedule, top);
}
