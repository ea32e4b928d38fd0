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

/// A thread copies a tile: one cache line of each row of the operand, to whole rows of the panel.
static void scheduleCopy(ScheduleBuilder &schedule, StringRef operand, StringRef lane, unsigned axis, int64_t panel) {
  constexpr int64_t kLine = 16;
  SmallVector<std::string> outer = openCopy(schedule, operand, lane, axis, panel);
  std::string row = (operand + "." + lane + "1").str();
  if (outer.size() > 1) {
    std::string last = outer.pop_back_val();
    schedule.split(last, kLine);
    outer.push_back(last + "0");
    schedule.reorder({row, last + "1"});
  }
  for (const std::string &loop : outer)
    schedule.bind(loop, "parallel");
}

static LogicalResult completeForCpu(Nest &nest, SmallVectorImpl<StepInterface> &steps) {
  ScheduleBuilder schedule(nest, steps);
  std::string lane = laneLetter(nest);
  if (!lane.empty()) {
    int64_t lanes = 128 / outputBytes(nest);
    for (auto [operand, axis] : operandsAcross(nest, lane))
      scheduleCopy(schedule, operand, lane, axis, lanes);
    schedule.split(lane, lanes);
    std::vector<std::string> order{lane + "0"};
    for (LoopOp loop : nest.mainChain())
      if (letterOf(loop.getName()) != lane)
        order.push_back(loop.getName().str());
    order.push_back(lane + "1");
    schedule.reorder(order);
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
