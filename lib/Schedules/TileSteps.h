// SPDX-License-Identifier: Apache-2.0
/// \file
/// Steps that all schedules of tiles take: layouts, splits of rows and of columns, marks.
#ifndef LACIS_LIB_SCHEDULES_TILESTEPS_H
#define LACIS_LIB_SCHEDULES_TILESTEPS_H

#include "TileConditions.h"

namespace lacis {

llvm::StringRef nameOfOperand(mlir::func::FuncOp function, mlir::BlockArgument operand);
/// Panels of so many rows, in steps of so many columns, of tiles. One tile beside the other has no digit, but where a
/// product is sampled.
FormatAttr layoutOfTiles(const Product &product, int64_t rows, int64_t step, StoredBlock tile, bool isUnique, bool isLinked);
/// Marks the loops of tiles: the rounds of `consumers` are side by side, those of `parts` one after another, and the
/// loops in `tile` are one product.
void markTiles(ScheduleBuilder &schedule, Product &product, const std::string &consumers, llvm::ArrayRef<std::string> parts,
               const std::string &sum, int64_t stages, const std::vector<std::string> &tile);

/// The names of the loops over rows, by what a round becomes: panels, a consumer, an accumulator, a row of a tile.
struct TileRows {
  std::vector<std::string> panels;
  std::string consumers;
  std::vector<std::string> parts, rows;
};

/// Splits the loops over rows, so that one loop each runs over panels of a block, consumers and row tiles.
TileRows cutRows(ScheduleBuilder &schedule, const TilePanel &panel, llvm::SmallVector<RowLoop> loops);
/// Splits a loop that stands with those over the matrices of a batch: with them, where these are one axis. Answers the loops
/// around the inner one, and that.
std::pair<std::vector<std::string>, std::string> cutWithBatch(ScheduleBuilder &schedule, const Product &product,
                                                              std::string loop, int64_t size);
/// The names of the loops of a sampled sum: over copies of the values, or none, over its rounds, over the depth of one.
struct TileSum {
  std::string copies, rounds, depth;
};

/// Splits the sum, which is one with those over the matrices of a batch. Copies have a loop of their own, inside of that over
/// the entries.
TileSum cutSum(ScheduleBuilder &schedule, const Product &product, int64_t size, const std::string &entries);
/// Schedules a sampled product on tensor cores, or answers why tiles cannot take it.
std::string completeSampled(ScheduleBuilder &schedule, const TileSizes &sizes);
/// Rows and columns of the largest stored blocks that have a layout of tiles; a dense matrix is scheduled like these.
inline constexpr int64_t kLargest = 128;
/// The panel for stored blocks of any number of tiles of 64 x 64, like that of blocks of 128; nullopt of others.
std::optional<TilePanel> panelOfOwnLevels(const StoredBlock &block, TilePanel panel);
/// Schedules a product over the levels of its own format.
void scheduleOwnLevels(ScheduleBuilder &schedule, Product &product, const TilePanel &panel);
/// The same of one that is sampled: a block of threads has rows of one stored block.
void sampleOwnLevels(ScheduleBuilder &schedule, Product &product, TilePanel panel);

} // namespace lacis

#endif // LACIS_LIB_SCHEDULES_TILESTEPS_H
