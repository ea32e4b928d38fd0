// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the default schedules of architectures with tensor cores share, and the sizes in which they differ.
#ifndef LACIS_LIB_SCHEDULES_TILES_H
#define LACIS_LIB_SCHEDULES_TILES_H

#include "Facts.h"

#include "lacis/Schedules/Rule.h"

namespace lacis {

/// A panel of rows and how it is walked: `consumers` have the same number of tiles of rows each; `columns` of the dense
/// operand are multiplied at once.
struct TilePanel {
  int64_t rows, columns;
  int64_t tileRows, tile; // the rows and columns of a stored tile
  int64_t consumers, stages, raster;
  bool isLinked; // tiles are read where the values lie, not from a copy
  std::optional<int64_t> capacity = std::nullopt;
  static constexpr int64_t kHalves = 64;
  int64_t step = kHalves; // columns that are multiplied at once: lines of 128 bytes
  int64_t columnUnit = 64; // tiles have a multiple of so many columns; warps multiply 64 of them
  bool walksOwnLevels = false; // no layout and no work lists: blocks of threads walk the levels of the format
};

/// How a product is sampled on stored blocks: the panel and the steps of the layout, and how many steps are a share.
/// With `within` steps are of the blocks of one column, as many as have 64 rows, gathered from the panel; the steps of a
/// share lie within so many columns.
struct SampledPanel {
  int64_t rows, step, share, stages;
  int64_t consumers = 2, depth = 64;
  std::optional<int64_t> within = std::nullopt;
};

/// What statements of a rolled loop may take: bytes of shared memory for their boxes, which up to so many blocks share,
/// and of which each store that goes through no box takes some; those that a block has for boxes, vectors and barriers
/// together; columns of the sums that one consumer carries, and those from which two share what wide rounds bring.
struct RolledRoom {
  int64_t bytes, blocks, storeBytes, most, sums, shared;
};

/// The sizes for stored blocks of so many rows and columns, which fill so many eighths of the matrix; nullopt where tiles
/// cannot take them.
struct TileSizes {
  std::optional<TilePanel> (*panel)(int64_t rows, int64_t columns);
  std::optional<SampledPanel> (*sampled)(int64_t rows, int64_t columns, int64_t eighths);
  RolledRoom rolled;
};

/// Shares of 128 rows and so many columns, or of 64 rows and twice the columns where blocks have 64, in a stage less;
/// nullopt where tiles cannot take the blocks.
std::optional<SampledPanel> sharesOf(int64_t rows, int64_t columns, int64_t wide, int64_t stages);
/// The sizes on GPUs that multiply by warps, and of products in TF32 on all.
TileSizes sizesOfWarps();

/// Schedules the loop that `roll` made as statements on tiles.
void scheduleRolled(ScheduleBuilder &schedule, LevelLoopOp round, const RolledRoom &room);

/// What remarks call the rule: by its step that others have not.
inline constexpr llvm::StringLiteral kTiles = "tensorize";

/// The rule of GPUs with tiles of the sizes that a nest asks for.
Rule ruleOfTiles(std::function<TileSizes(Nest &nest)> sizesOf);

} // namespace lacis

#endif // LACIS_LIB_SCHEDULES_TILES_H
