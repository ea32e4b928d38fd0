// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of GPUs: a warp runs a row (or a tile of rows) times 32 vectors of lanes.
///
/// Each lane of the warp holds one 16-byte vector of the output, so an entry of the sparse operand
/// reads 512 contiguous bytes of the dense one. Column tiles are outermost in the grid: the rows
/// of one tile share it in the second-level cache.
#include "DefaultSchedule.h"

using namespace mlir;
using namespace lacis;

static constexpr int64_t kWarps = 4, kLanes = 32, kThreads = 128;
/// Neighbours of an operand's row that a thread copies: one sector of reads, coalesced writes.
static constexpr int64_t kSector = 8;

/// A vector of 16 bytes for each lane of a warp.
static CopyRule copyRule(Nest &nest) { return {kLanes * 16 / outputBytes(nest), kSector, "block.x", "thread.x"}; }

/// Blocks of rows for the warps; the last constant digit is jammed.
static void scheduleRows(ScheduleBuilder &schedule, StringRef lane) {
  SmallVector<LoopOp> chain = schedule.getNest().mainChain();
  auto rows = llvm::find_if(llvm::reverse(chain), [&](LoopOp loop) { return letterOf(loop.getName()) != lane; });
  if (rows == llvm::reverse(chain).end())
    return;
  std::string name = (*rows).getName().str();
  std::optional<int64_t> trip = (*rows).getTrip();
  int64_t jam = !trip || !canJam(*rows) ? 1 : *trip % 4 == 0 ? 4 : *trip % 2 == 0 ? 2 : 1;
  if (jam > 1) {
    schedule.split(name, jam);
    schedule.jam(name + "1");
    name += "0";
    trip = *trip / jam;
  }
  if (!trip || *trip % kWarps == 0) {
    schedule.split(name, kWarps);
    schedule.bind(name + "1", "warp");
  }
}

/// A thread owns a coordinate of the innermost loop that has no mark, where no loop of the nest is bound to threads.
static void scheduleThreads(ScheduleBuilder &schedule, ArrayRef<LoopOp> chain) {
  auto isFree = [](LoopOp loop) { return !isMarked(loop); };
  bool hasThreads = false;
  LoopOp(chain.front())->walk([&](LoopOp loop) {
    StringRef unit = loop.getBind().value_or("");
    hasThreads |= unit.starts_with("thread") || unit == "warp" || unit == "lane";
  });
  auto innermost = llvm::find_if(llvm::reverse(chain), isFree);
  if (hasThreads || innermost == llvm::reverse(chain).end())
    return;
  LoopOp loop = *innermost;
  std::string name = loop.getName().str();
  if (auto trip = loop.getTrip(); trip && *trip <= kThreads)
    return schedule.bind(name, "thread.x");
  schedule.split(name, kThreads);
  schedule.bind(name + "1", "thread.x");
}

/// Four entries at once: their loads are in flight together.
static void unrollEntries(ScheduleBuilder &schedule) {
  SmallVector<std::string> names;
  schedule.getNest().getFunction().walk([&](Operation *loop) {
    auto dense = dyn_cast<LoopOp>(loop); // over all coordinates of a dense level
    bool walks = isa<LevelLoopOp>(loop) || (dense && dense.getNumResults() != 0 && !dense.getTrip() && !isMarked(dense));
    if (!walks || loop->hasAttr("unroll"))
      return;
    loop->getRegion(0).walk([&](Operation *op) { walks &= !isa<LoopOp, LevelLoopOp>(op); });
    StringRef name = loop->getAttrOfType<StringAttr>("name").getValue();
    if (walks && !llvm::is_contained(names, name))
      names.push_back(name.str());
  });
  for (const std::string &name : names)
    schedule.unroll(name, 4);
}

/// The threads of a block compute a stored block of the output, four rows each.
static void scheduleBlock(ScheduleBuilder &schedule, LoopOp block) {
  LoopOp rows = block->getParentOfType<LoopOp>();
  int64_t width = *block.getTrip();
  std::string column = block.getName().str();
  if (width > kThreads) {
    schedule.split(column, kThreads);
    column += "1";
    width = kThreads;
  }
  schedule.bind(column, "thread.x");
  std::optional<int64_t> height = rows ? rows.getTrip() : std::nullopt;
  if (!height || rows.getNumResults() != 0)
    return;
  std::string row = rows.getName().str();
  if (*height % 4 == 0 && canJam(rows)) {
    schedule.split(row, 4);
    schedule.jam(row + "1");
    row += "0";
    *height /= 4;
  }
  if (*height * width <= 1024)
    schedule.bind(row, "thread.y");
}

/// A warp sums the products of four entries at once: each lane takes every 32nd vector, and the lanes add up their
/// sums.
static void scheduleEntries(ScheduleBuilder &schedule, LoopOp sum) {
  Nest &nest = schedule.getNest();
  std::string name = sum.getName().str();
  CopyRule copy = copyRule(nest);
  copy.rows = true;
  bool neighbours = knownDivisor(sum.getUpper()) % (copy.panel / kLanes) == 0;
  int64_t panel = neighbours || !operandsAcross(nest, name).empty() ? copy.panel : kLanes;
  scheduleCopies(schedule, name, copy);
  schedule.split(name, panel);
  std::string lane = name + "1";
  if (panel > kLanes) {
    schedule.split(lane, panel / kLanes);
    schedule.vectorize(lane + "1", panel / kLanes);
    lane += "0";
  }
  schedule.reorder({lane, name + "0"});
  schedule.bind(lane, "lane");
  LoopOp entries = nest.mainChain().back();
  std::string units = entries.getName().str();
  schedule.split(units, 4 * kWarps);
  schedule.split(units + "1", 4);
  schedule.bind(units + "10", "warp");
  if (LoopOp four = nest.find(units + "11"); four && canJam(four))
    schedule.jam(units + "11");
}

/// The whole default of a main nest that no step has changed.
static void scheduleMain(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  if (isSampled(nest)) {
    if (LoopOp block = blockLoop(nest))
      return scheduleBlock(schedule, block);
    if (LoopOp sum = sumLoop(nest); sum)
      return scheduleEntries(schedule, sum);
  }
  std::string lane = laneLetter(nest);
  if (lane.empty())
    return scheduleThreads(schedule, nest.mainChain());
  CopyRule copy = copyRule(nest);
  int64_t vector = copy.panel / kLanes;
  scheduleCopies(schedule, lane, copy);
  openLanes(schedule, lane, copy.panel);
  scheduleRows(schedule, lane);
  schedule.split(lane + "1", vector);
  schedule.vectorize(lane + "11", vector);
  schedule.bind(lane + "10", "lane");
}

LogicalResult lacis::completeForCuda(Nest &nest, SmallVectorImpl<StepInterface> &steps, bool untouched) {
  if (isTensorized(nest))
    return success();
  ScheduleBuilder schedule(nest, steps);
  if (untouched)
    scheduleMain(schedule);
  else
    copyAcrossVectors(schedule, copyRule(nest));
  for (ArrayRef<LoopOp> chain : allChains(nest))
    scheduleThreads(schedule, chain);
  for (ArrayRef<LoopOp> chain : allChains(nest))
    bindOpenLoops(schedule, chain, "block.x");
  unrollEntries(schedule);
  return schedule.getResult();
}

static const bool registered = (registerDefaultSchedule("cuda", completeForCuda), true);
