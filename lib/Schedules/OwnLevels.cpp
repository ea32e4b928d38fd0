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
  if (block.rows % panel.rows != 0)
    panel.rows = kTile, panel.consumers = 1;
  panel.walksOwnLevels = true;
  return panel;
}

/// The loop over the columns of a stored block, split into those of a round.
static std::string cutDepth(ScheduleBuilder &schedule, Product &product, int64_t step) {
  LoopOp depth;
  product.sum->walk([&](LoopOp loop) { depth = loop != product.sum ? loop : depth; });
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
  constexpr std::array<StringLiteral, 2> units{"block.x", "block.z"}; // of stored blocks, and of panels in one
  for (auto [panels, unit] : llvm::zip(rows.panels, units))
    schedule.bind(panels, unit);
  schedule.bind(schedule.fuse(around), "block.y");
  tile.insert(tile.end(), {columns, depth});
  markTiles(schedule, product, rows.consumers, rows.parts, sum, panel.stages, tile);
}

/// Splits a loop over rows, if they are more than so many; the names of the outer and of the inner loop, or no outer one.
static std::pair<std::string, std::string> cut(ScheduleBuilder &schedule, const std::string &name, int64_t rows, int64_t size) {
  if (rows == size)
    return {"", name};
  schedule.split(name, size);
  return {name + "0", name + "1"};
}

void lacis::sampleOwnLevels(ScheduleBuilder &schedule, Product &product, const TilePanel &panel) {
  StoredBlock block = product.block();
  std::string entries = product.entries.getName().str();
  auto [panels, rest] = cut(schedule, (product.rows + "1").str(), block.rows, panel.rows);
  auto [consumers, rows] = cut(schedule, rest, panel.rows, kTile);
  TileSum sum = cutSum(schedule, product, panel.step, entries);
  schedule.bind(entries, "block.x");
  if (!panels.empty())
    schedule.bind(panels, "block.y");
  if (!sum.copies.empty())
    schedule.bind(sum.copies, "block.z");
  markTiles(schedule, product, consumers, {}, sum.rounds, panel.stages, {rows, (product.columns + "1").str(), sum.depth});
}
