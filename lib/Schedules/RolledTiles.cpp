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
  schedule.pipeline(name, kStages);
  schedule.tensorize({name});
}
