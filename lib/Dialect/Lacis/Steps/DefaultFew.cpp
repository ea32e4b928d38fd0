// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedules of GPUs for few vectors: the lanes of a warp share the entries of a row.
///
/// With few columns there is nothing for the lanes to hold: each takes every 32nd entry of a row and multiplies it by
/// all vectors, which stand in registers; the lanes add up their sums. Nothing is copied, one launch does it all. How
/// many vectors there are is known at the launch, so each limit gets a nest of its own.
#include "DefaultSchedule.h"

using namespace mlir;
using namespace lacis;

/// Up to so many vectors have nests of their own: a gather of their elements costs less than copying them to panels.
static constexpr int64_t kFew[] = {1, 4};
static constexpr int64_t kWarps = 4, kLanes = 32;

/// The only loop of a nest that carries a sum, where it walks positions and no step has marked it; else null.
static LevelLoopOp entryLoop(LoopOp top) {
  LevelLoopOp found;
  unsigned sums = 0;
  top->walk([&](Operation *op) {
    if (!isa<LoopOp, LevelLoopOp>(op) || op->getNumResults() == 0)
      return;
    ++sums;
    found = dyn_cast<LevelLoopOp>(op);
  });
  bool marked = found && (found.getUnroll() || found->hasAttr("lacis.pipeline"));
  return sums == 1 && found && !marked && combinerOf(found) ? found : LevelLoopOp();
}

/// Rows on warps, or on parts of a warp; the entries of a row on its lanes.
static void scheduleLanes(ScheduleBuilder &schedule, const std::string &rows, const std::string &entries, int64_t lanes) {
  int64_t share = kLanes / lanes;
  schedule.split(rows, kWarps * share);
  std::string warps = rows + "1";
  if (share > 1) {
    schedule.split(warps, share);
    schedule.bind(warps + "1", "lane");
    warps += "0";
  }
  schedule.bind(warps, "warp");
  schedule.splitNnz(entries, lanes);
  schedule.reorder({entries + "1", entries + "0"});
  schedule.bind(entries + "1", "lane");
}

/// Lanes for a row: many rows are short ones.
static int64_t lanesFor(Nest &nest, StringRef rows) { return letterHas(nest, letterOf(rows), "lacis.large") ? 8 : kLanes; }

bool lacis::scheduleVector(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  LoopOp rows = nest.mainChain().back();
  LevelLoopOp entries = entryLoop(nest.mainChain().front());
  if (!entries || rows.getTrip())
    return false;
  scheduleLanes(schedule, rows.getName().str(), entries.getName().str(), lanesFor(nest, rows.getName()));
  return true;
}

/// The nest for up to `most` vectors, whose elements are the loop `lane`.
static void scheduleCase(ScheduleBuilder &schedule, StringRef lane, StringRef rows, StringRef entries, int64_t most) {
  schedule.upto(lane, most);
  std::string prefix = ("upto" + Twine(most) + ".").str(), vectors = prefix + lane.str();
  if (most > 1) {
    schedule.split(vectors, most);
    std::vector<std::string> order{vectors + "0"};
    for (LoopOp loop : perfectChain(outermostLoop(schedule.getNest().find(vectors + "0"))))
      if (!loop.getName().starts_with(vectors))
        order.push_back(loop.getName().str());
    order.push_back(vectors + "1");
    schedule.reorder(order);
    schedule.jam(vectors + "1");
  }
  std::string row = prefix + rows.str();
  scheduleLanes(schedule, row, prefix + entries.str(), lanesFor(schedule.getNest(), rows));
}

void lacis::scheduleFew(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  std::string lane = laneLetter(nest);
  LoopOp vectors = lane.empty() || isSampled(nest) ? LoopOp() : nest.find(lane);
  LoopOp rows;
  for (LoopOp loop : nest.mainChain())
    if (loop != vectors)
      rows = loop;
  LevelLoopOp entries = entryLoop(nest.mainChain().front());
  if (!vectors || knownSize(vectors.getUpper()) || !rows || rows.getTrip() || !entries ||
      letterHas(nest, letterOf(rows.getName()), "lacis.uneven"))
    return;
  std::string row = rows.getName().str(), entry = entries.getName().str();
  for (int64_t most : kFew)
    if (knownDivisor(vectors.getUpper()) <= most)
      scheduleCase(schedule, lane, row, entry, most);
}
