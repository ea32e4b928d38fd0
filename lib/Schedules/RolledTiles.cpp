// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of a rolled loop on tensor cores: two warpgroups have a row of tiles each, and rings of their own.
#include "Tiles.h"

using namespace mlir;
using namespace lacis;

/// Rows of tiles that share a processor: while one computes exponentials the other multiplies.
static constexpr int64_t kRowsAtOnce = 2;
/// Places of a ring: one is read while the next is filled. More do not fit beside the other row's for heads of 128, and
/// what does not fit twice is not rolled (Loops/RolledTiles.cpp).
static constexpr int64_t kStages = 2;
/// Sums without a maximum, as gradients are, have as many as fit in a row's half of shared memory: a round of narrow heads
/// may be over before the next boxes have come. Four rounds are longer than their way.
static constexpr int64_t kMostStages = 4, kRows = 64, kBytesOfRow = 112 << 10;

/// The dense operands that products of the rounds take, by name.
static std::vector<std::string> operandsOf(LevelLoopOp round, func::FuncOp function) {
  std::vector<std::string> names;
  round->walk([&](ReadOp read) {
    auto argument = dyn_cast<BlockArgument>(read.getTensor());
    if (!argument || read->getParentOfType<LoopOp>().getNumResults() == 0) // vectors have no such step
      return;
    std::string name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name").str();
    if (!llvm::is_contained(names, name))
      names.push_back(name);
  });
  return names;
}

static bool changesIn(LevelLoopOp round, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner() == round.getBlock();
  return llvm::any_of(value.getDefiningOp()->getOperands(), [&](Value operand) { return changesIn(round, operand); });
}

/// As many places as fit beside the boxes that stay. A box has the rows of a tile, or, in each round another, its columns.
static int64_t stagesOf(LevelLoopOp round) {
  bool hasMaximum = round->walk([](arith::MaximumFOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (hasMaximum)
    return kStages;
  int64_t columns = 1;
  unsigned summed = formatOf(round.getTensor()).getLevels()[round.getLevel()].getDigits()[0].axis;
  for (LevelAttr level : formatOf(round.getTensor()).getLevels().drop_front(round.getLevel() + 1))
    columns = level.getDigits()[0].axis == summed ? level.getDigits()[0].mod : columns;
  llvm::SmallDenseMap<Value, int64_t> stay, come;
  round->walk([&](ReadOp read) {
    if (!isa<BlockArgument>(read.getTensor()) || read->getParentOfType<LoopOp>().getNumResults() == 0)
      return;
    bool isOfRound = llvm::any_of(read.getIndices(), [&](Value index) { return changesIn(round, index); });
    int64_t width = cast<RankedTensorType>(read.getTensor().getType()).getShape().back() * 2; // bytes of a half type
    (isOfRound ? come : stay)[read.getTensor()] = width * (isOfRound ? columns : kRows);
  });
  int64_t left = kBytesOfRow, each = 0;
  for (auto &[operand, bytes] : stay)
    left -= bytes;
  for (auto &[operand, bytes] : come)
    each += bytes;
  return each == 0 ? kStages : std::clamp(left / each, kStages, kMostStages);
}

void lacis::scheduleRolled(ScheduleBuilder &schedule, LevelLoopOp round) {
  func::FuncOp function = schedule.getNest().getFunction();
  SmallVector<LoopOp> outer;
  for (auto loop = round->getParentOfType<LoopOp>(); loop; loop = loop->getParentOfType<LoopOp>())
    outer.push_back(loop);
  std::string rows = outer.front().getName().str(), name = round.getName().str();
  std::vector<std::string> operands = operandsOf(round, function), batch;
  for (LoopOp loop : llvm::reverse(llvm::drop_begin(outer)))
    batch.push_back(loop.getName().str());
  for (const std::string &loop : batch)
    schedule.bind(loop, "block.y"); // rows of tiles are many, and have block.x
  schedule.split(rows, kRowsAtOnce);
  schedule.bind(rows + "0", "block.x");
  schedule.bind(rows + "1", "warpgroup");
  for (const std::string &operand : operands)
    schedule.stage(operand, "shared");
  schedule.pipeline(name, stagesOf(round));
  schedule.tensorize({name});
}
