// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of CPUs: a unit is a row (or a tile of rows) times a panel of lanes.
///
/// 128 bytes of accumulators a row fill four AVX2 or two AVX-512 registers; the dense operand is
/// laid out in panels of as many lanes, so that each entry of the sparse operand reads one
/// contiguous, aligned run of it, and a panel stays in the second-level cache.
#include "DefaultSchedule.h"

using namespace mlir;
using namespace lacis;

/// Elements of an operand's row that a thread copies at once: a cache line of float32.
static constexpr int64_t kLine = 16;

static CopyRule copyRule(Nest &nest) { return {128 / outputBytes(nest), kLine, "parallel", ""}; }

/// Two rows of one block share the walk.
static void jamRows(ScheduleBuilder &schedule, StringRef lane) {
  SmallVector<LoopOp> chain = schedule.getNest().mainChain();
  for (LoopOp loop : llvm::reverse(chain)) {
    if (letterOf(loop.getName()) == lane)
      continue;
    std::string name = loop.getName().str();
    if (auto trip = loop.getTrip(); trip && *trip % 2 == 0 && canJam(loop)) {
      schedule.split(name, 2);
      schedule.jam(name + "1");
    }
    break;
  }
}

/// A product sampled on a pattern: a row of a stored block is a vector, and four rows share what they read; without
/// blocks the sum is a vector, along rows of the operands that are laid out so.
static void scheduleSampled(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  if (LoopOp block = blockLoop(nest)) {
    auto around = block->getParentOfType<LoopOp>();
    std::string name = block.getName().str();
    int64_t width = std::min<int64_t>(*block.getTrip(), 16);
    if (*block.getTrip() > width) {
      schedule.split(name, width);
      name += "1";
    }
    schedule.vectorize(name, width);
    if (around && around.getTrip() && *around.getTrip() % 4 == 0 && canJam(around)) {
      std::string rows = around.getName().str();
      schedule.split(rows, 4);
      schedule.jam(rows + "1");
    }
    return;
  }
  if (LoopOp sum = sumLoop(nest)) {
    std::string name = sum.getName().str();
    CopyRule copy = copyRule(nest);
    copy.rows = true;
    scheduleCopies(schedule, name, copy);
    schedule.split(name, copy.panel);
    schedule.vectorize(name + "1", copy.panel);
  }
}

/// The whole default of a main nest that no step has changed.
static void scheduleMain(ScheduleBuilder &schedule) {
  Nest &nest = schedule.getNest();
  if (isSampled(nest))
    return scheduleSampled(schedule);
  std::string lane = laneLetter(nest);
  if (!lane.empty()) {
    CopyRule copy = copyRule(nest);
    int64_t lanes = copy.panel;
    scheduleCopies(schedule, lane, copy);
    openLanes(schedule, lane, lanes);
    schedule.vectorize(lane + "1", lanes);
  }
  jamRows(schedule, lane);
}

static LogicalResult completeForCpu(Nest &nest, SmallVectorImpl<StepInterface> &steps, bool untouched) {
  if (isTensorized(nest))
    return success();
  ScheduleBuilder schedule(nest, steps);
  if (untouched)
    scheduleMain(schedule);
  else
    copyAcrossVectors(schedule, copyRule(nest));
  for (ArrayRef<LoopOp> chain : allChains(nest))
    bindOpenLoops(schedule, chain, "parallel");
  LogicalResult result = schedule.getResult();
  nest.getFunction().walk([&](LoopOp loop) {
    if (loop.getBind().value_or("parallel") != "parallel")
      result = loop.emitError("bind: a CPU has no '") << *loop.getBind() << "'; use parallel";
  });
  return result;
}

static const bool registered = (registerDefaultSchedule("cpu", completeForCpu), true);
