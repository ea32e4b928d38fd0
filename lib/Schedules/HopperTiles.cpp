// SPDX-License-Identifier: Apache-2.0
/// \file
/// The sizes of tiles on sm_90a.
///
/// Blocks of 64 and 128 are multiplied where they lie, in panels of 128 rows and 256 columns; smaller ones through
/// slabs of 64 x 16, in panels of 384 rows and 128 columns. Products sampled on a pattern go by shares of a row of
/// blocks: 64 x 512 outputs, or 128 x 256; or, of small blocks, of those that are stored in panels of 512 rows.
/// Products in TF32 are warps' business, but for blocks of 64 and 128 where both operands lie along the contraction.
#include "TileConditions.h"
#include "lacis/Dialect/Lacis/IR/BlockMemory.h"
#include "lacis/Dialect/Lacis/IR/RolledTileSizes.h"

using namespace mlir;
using namespace lacis;

/// Columns that a store of a half type writes at least, in lines of 32 bytes.
static constexpr int64_t kColumnUnit = 16;

static std::optional<TilePanel> panelFor(int64_t rows, int64_t columns) {
  constexpr TilePanel blocks{128, 256, 64, 64, 2, 4, 4, /*isLinked=*/true, /*capacity=*/std::nullopt,
                             TilePanel::kHalves, kColumnUnit};
  constexpr TilePanel slabs{384, 128, 64, 16, 3, 4, 8, /*isLinked=*/false, /*capacity=*/16,
                            TilePanel::kHalves, kColumnUnit};
  auto nests = [](int64_t block, int64_t tile) { return block % tile == 0 || tile % block == 0; };
  if ((rows == 64 || rows == 128) && columns % 64 == 0)
    return blocks;
  if (rows >= 8 && columns >= 8 && rows <= 128 && nests(rows, slabs.tileRows) && nests(columns, slabs.tile))
    return slabs;
  return std::nullopt;
}

/// A panel multiplies what the union of its blocks has; where half of the small blocks are stored or fewer, it is
/// faster to gather those that are, from tall panels.
static std::optional<SampledPanel> sampledPanelFor(int64_t rows, int64_t columns, int64_t eighths) {
  constexpr int64_t wide = 256; // a stage has 128 x 256 outputs, or 64 x 512 where blocks have 64 rows
  std::optional<SampledPanel> shares = sharesOf(rows, columns, wide, /*stages=*/4);
  if (shares && rows <= 32 && columns <= 32 && eighths <= 4)
    return SampledPanel{512, columns, columns == 32 ? 18 : 30, 3, /*consumers=*/3, /*depth=*/32, /*within=*/640};
  return shares;
}

/// Blocks of 64 and 128 in TF32, read along their rows.
static std::optional<TilePanel> singlePanelFor(int64_t rows, int64_t columns) {
  if ((rows == 64 || rows == 128) && columns % 64 == 0)
    return TilePanel{128, 256, 64, 32, 2, 4, 4, /*isLinked=*/true, /*capacity=*/std::nullopt, /*step=*/32};
  return sizesOfWarps().panel(rows, columns);
}

static TileSizes sizesOf(Nest &nest) {
  constexpr int64_t most = kMostBlockBytes - (1 << 10); // less what barriers and vectors take
  constexpr RolledRoom rolled{kRolledBytes, /*blocks=*/1, /*storeBytes=*/16 << 10, most, /*sums=*/192, /*shared=*/kSharedSums};
  if (!takesTf32(nest))
    return {panelFor, sampledPanelFor, rolled};
  std::string why;
  std::optional<Product> product = productOf(nest, why);
  TileSizes warps = sizesOfWarps();
  bool liesAlongDepth = product && !product->isSampled() && !product->block().transposed && product->isRightAlong;
  return liesAlongDepth ? TileSizes{singlePanelFor, warps.sampled, rolled} : warps;
}

static const bool registered = (registerRule("cuda:sm_90a", ruleOfTiles(sizesOf)), true);
