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

static LogicalResult completeForCpu(Nest &nest, SmallVectorImpl<StepInterface> &steps) {
  ScheduleBuilder schedule(nest, steps);
  std::string lane = laneLetter(nest);
  if (!lane.empty()) {
    int64_t lanes = 128 / outputBytes(nest);
    for (auto [operand, axis] : operandsAcross(nest, lane))
      scheduleCopy(schedule, operand, lane, axis, lanes, kLine, "parallel");
    openLanes(schedule, lane, lanes);
    schedule.vectorize(lane + "1", lanes);
  }
  // Rows of one block share the walk: two at a time.
  SmallVector<LoopOp> chain = nest.mainChain();
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
  for (LoopOp loop : nest.mainChain())
    if (!loop.getTrip())
      schedule.bind(loop.getName(), "parallel");
  return schedule.getResult();
}

static const bool registered = (registerDefaultSchedule("cpu", completeForCpu), true);
