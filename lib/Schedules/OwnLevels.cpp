// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of large stored blocks on tensor cores: their own levels are walked, tile by tile.
///
/// A block of threads has 128 rows of a stored block, or 64, and as many columns as the panels of others have. Each round
/// brings what 64 of the sum need. Work comes out even by its amount: large blocks are few.
#include "TileSteps.h"

using namespace mlir;
using namespace lacis;

static constexpr int64_t kTile = 64; // rows that a warpgroup multiplies, and half-type elements of a line of 128 bytes

std::optional<TilePanel> lacis::panelOfOwnLevels(const StoredBlock &block, TilePanel panel) {
  if (block.rows == 0 || block.rows % kTile != 0 || block.columns % kTile != 0)
    return std::nullopt;
  if (block.allRows % panel.rows != 0)
    panel.rows = kTile, panel.consumers = 1;
  panel.walksOwnLevels = true;
  return panel;
}

/// The loop over the columns of a stored block, split into those of a round.
static std::string cutDepth(ScheduleBuilder &schedule, Product &product, int64_t step) {
  LoopOp depth = depthLoop(product);
  std::string name = depth.getName().str();
  if (depth.getTrip() == step)
    return name;
  schedule.split(name, step);
  return name + "1";
}

void lacis::scheduleOwnLevels(ScheduleBuilder &schedule, Product &product, const TilePanel &panel) {
  std::string sum = product.sumName().str();
  TileRows rows = cutRows(schedule, panel, rowLoops(loopsOf(schedule.getNest().mainChain(), product.rows)));
  auto [around, columns] = cutWithBatch(schedule, product, product.columns.str(), panel.columns);
  std::string depth = cutDepth(schedule, product, panel.step);
  std::vector<std::string> order = rows.panels, tile = rows.rows;
  llvm::append_range(order, around);
  if (!rows.consumers.empty())
    order.push_back(rows.consumers);
  llvm::append_range(order, rows.parts);
  llvm::append_range(order, rows.rows);
  order.push_back(columns);
  schedule.reorder(order);
  schedule.bind(rows.panels.front(), "block.x");
  if (rows.panels.size() > 1) // in one stored block
    schedule.bind(schedule.fuse(ArrayRef(rows.panels).drop_front()), "block.z");
  schedule.bind(schedule.fuse(around), "block.y");
  tile.insert(tile.end(), {columns, depth});
  markTiles(schedule, product, rows.consumers, rows.parts, sum, panel.stages, tile);
}

void lacis::sampleOwnLevels(ScheduleBuilder &schedule, Product &product, TilePanel panel) {
  std::string entries = product.entries.getName().str();
  SmallVector<std::string> columns;
  for (LoopOp loop : loopsOfBlock(product, product.columns))
    columns.push_back(loop.getName().str());
  if (product.block().isNested) // loops over columns may stand between those over rows
    panel.rows = kTile, panel.consumers = 1;
  TileRows rows = cutRows(schedule, panel, rowLoops(loopsOfBlock(product, product.rows)));
  std::vector<std::string> around = rows.panels, tile = rows.rows; // tiles of a stored block are work of their own
  around.insert(around.end(), columns.begin(), columns.end() - 1);
  tile.push_back(columns.back());
  TileSum sum = cutSum(schedule, product, panel.step, entries);
  schedule.bind(entries, "block.x");
  for (const std::string &loop : around)
    schedule.bind(loop, "block.y");
  if (!sum.copies.empty())
    schedule.bind(sum.copies, "block.z");
  tile.push_back(sum.depth);
  markTiles(schedule, product, rows.consumers, {}, sum.rounds, panel.stages, tile);
}
