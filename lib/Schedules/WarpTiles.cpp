// SPDX-License-Identifier: Apache-2.0
/// \file
/// The sizes of tiles on sm_80 and every later architecture that has none of its own.
///
/// Panels have 128 rows. Blocks are multiplied where they lie, in tiles of up to 64 x 64; others through copies in
/// tiles of 32 x 16.
#include "Tiles.h"
#include "lacis/Dialect/Lacis/IR/BlockMemory.h"

using namespace mlir;
using namespace lacis;

/// Columns of the dense operand that are multiplied at once, and stages: what shared memory and registers have room
/// for.
struct TileRoom {
  int64_t columns, stages;
};

/// Of blocks with so much shared memory, and of those with less.
static constexpr TileRoom kLarge{192, 4}, kSmall{128, 3};
static constexpr int64_t kLargeBytes = 163 << 10;

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

/// For blocks with so many bytes of shared memory. Of a rolled loop up to three share a processor, which keeps 1 KB for
/// each; vectors and barriers have 1 KB. Sums of 256 columns take 128 of the 255 registers that a thread can have.
static TileSizes sizesFor(int64_t bytes) {
  constexpr int64_t blocks = 3, each = 1 << 10, sums = 256, none = std::numeric_limits<int64_t>::max();
  RolledRoom rolled{bytes - blocks * each, blocks, /*storeBytes=*/0, /*most=*/bytes - each, sums, /*shared=*/none};
  if (bytes < kLargeBytes)
    return {panelFor<kSmall>, sampledPanelFor<kSmall>, rolled};
  return {panelFor<kLarge>, sampledPanelFor<kLarge>, rolled};
}

TileSizes lacis::sizesOfWarps() { return sizesFor(kLargeBytes); }

static const bool registered = [] {
  for (const BlockMemory &memory : kBlockMemory)
    registerRule(memory.target, ruleOfTiles([bytes = memory.bytes](Nest &) { return sizesFor(bytes); }));
  registerNoRule("cuda:sm_7", kTiles);
  return true;
}();
