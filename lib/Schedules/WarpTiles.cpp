// SPDX-License-Identifier: Apache-2.0
/// \file
/// The sizes of tiles on sm_80 and every later architecture that has none of its own.
///
/// Panels have 128 rows. Blocks are multiplied where they lie, in tiles of up to 64 x 64; others through copies in
/// tiles of 32 x 16.
#include "Tiles.h"

using namespace mlir;
using namespace lacis;

/// Columns of the dense operand that are multiplied at once, and stages: what shared memory and registers have room
/// for.
struct TileRoom {
  int64_t columns, stages;
};

/// A block has 163 KB of shared memory, or 99 KB. The 227 KB of sm_90 and of sm_100 to sm_103 are for rolled loops
/// alone.
static constexpr TileRoom kLarge{192, 4}, kSmall{128, 3};

static TilePanel panelOf(const TileRoom &room, int64_t tileRows, int64_t tile, bool isLinked) {
  constexpr int64_t rows = 128, consumers = 2, raster = 4;
  return {rows, room.columns, tileRows, tile, consumers, room.stages, raster, isLinked};
}

template <const TileRoom &room> static std::optional<TilePanel> panelFor(int64_t rows, int64_t columns) {
  constexpr int64_t most = 64, least = 16;
  if (rows == 0 || columns == 0 || 2 * most % rows != 0)
    return std::nullopt;
  auto divides = [](int64_t size) { return size == least || size == 2 * least || size % most == 0; };
  if (divides(rows) && divides(columns))
    return panelOf(room, std::min(rows, most), std::min(columns, most), /*isLinked=*/true);
  auto nests = [](int64_t size) { return size % least == 0 || size == 8; };
  if (nests(rows) && nests(columns))
    return panelOf(room, 2 * least, least, /*isLinked=*/false);
  return std::nullopt;
}

template <const TileRoom &room>
static std::optional<SampledPanel> sampledPanelFor(int64_t rows, int64_t columns, int64_t) {
  return sharesOf(rows, columns, room.columns, /*stages=*/3);
}

/// Sums of 256 columns take 128 of the 255 registers that a thread can have. With 227 KB two blocks share a processor
/// where the gradients of heads of 128 have two places in their rings.
static constexpr RolledRoom kLargeRolled{160 << 10, /*blocks=*/3, /*storeBytes=*/0, /*most=*/162 << 10, /*sums=*/256};
static constexpr RolledRoom kSmallRolled{96 << 10, /*blocks=*/3, /*storeBytes=*/0, /*most=*/98 << 10, /*sums=*/256};
static constexpr RolledRoom kLargestRolled{224 << 10, /*blocks=*/3, /*storeBytes=*/0, /*most=*/226 << 10, /*sums=*/256};

TileSizes lacis::sizesOfWarps() { return {panelFor<kLarge>, sampledPanelFor<kLarge>, kLargeRolled}; }

static TileSizes largeSizes(Nest &) { return sizesOfWarps(); }
static TileSizes largestSizes(Nest &) { return {panelFor<kLarge>, sampledPanelFor<kLarge>, kLargestRolled}; }
static TileSizes smallSizes(Nest &) { return {panelFor<kSmall>, sampledPanelFor<kSmall>, kSmallRolled}; }

static const bool registered = [] {
  registerRule("cuda:sm_", ruleOfTiles(largeSizes));
  for (StringRef small : {"cuda:sm_86", "cuda:sm_89", "cuda:sm_12"})
    registerRule(small, ruleOfTiles(smallSizes));
  for (StringRef largest : {"cuda:sm_9", "cuda:sm_10"})
    registerRule(largest, ruleOfTiles(largestSizes));
  registerNoRule("cuda:sm_7", kTiles);
  return true;
}();
