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

/// No lanes in the output: a thread owns a row.
static void scheduleThreads(ScheduleBuilder &schedule) {
  std::string name = schedule.getNest().mainChain().back().getName().str();
  schedule.split(name, kThreads);
  schedule.bind(name + "1", "thread.x");
}

/// Four entries at once: their loads are in flight together.
static void unrollEntries(ScheduleBuilder &schedule) {
  SmallVector<std::string> names;
  schedule.getNest().getFunction().walk([&](LevelLoopOp loop) {
    bool innermost = true;
    loop.getBody().walk([&](Operation *op) { innermost &= !isa<LoopOp, LevelLoopOp>(op); });
    if (innermost && !llvm::is_contained(names, loop.getName()))
      names.push_back(loop.getName().str());
  });
  for (const std::string &name : names)
    schedule.unroll(name, 4);
}

static LogicalResult completeForCuda(Nest &nest, SmallVectorImpl<StepInterface> &steps) {
  ScheduleBuilder schedule(nest, steps);
  std::string lane = laneLetter(nest);
  if (lane.empty()) {
    scheduleThreads(schedule);
  } else {
    int64_t vector = 16 / outputBytes(nest);
    int64_t panel = kLanes * vector;
    for (auto [operand, axis] : operandsAcross(nest, lane)) {
      scheduleCopy(schedule, operand, lane, axis, panel, kSector, "block.x");
      schedule.bind(operand + "." + lane + "1", "thread.x");
    }
    openLanes(schedule, lane, panel);
    scheduleRows(schedule, lane);
    schedule.split(lane + "1", vector);
    schedule.vectorize(lane + "11", vector);
    schedule.bind(lane + "10", "lane");
  }
  for (LoopOp loop : nest.mainChain())
    if (!loop.getTrip())
      schedule.bind(loop.getName(), "block.x");
  unrollEntries(schedule);
  return schedule.getResult();
}

static const bool registered = (registerDefaultSchedule("cuda", completeForCuda), true);
