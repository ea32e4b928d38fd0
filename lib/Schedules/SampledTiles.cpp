// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of products that are sampled on a pattern of stored blocks, on tensor cores.
#include "TileSteps.h"

using namespace mlir;
using namespace lacis;

/// The sum of a share is split into up to so many parts. 16 and 32 parts were measured, and gained only with few shares
/// in blocks of 16.
static constexpr int64_t kParts = 8;

std::optional<SampledPanel> lacis::sharesOf(int64_t rows, int64_t columns, int64_t wide, int64_t stages) {
  auto known = [](int64_t size) { return size == 16 || size == 32 || size == 64 || size == 128; };
  if (!known(rows) || !known(columns) || (rows == 128 && columns < 64))
    return std::nullopt;
  int64_t step = std::max<int64_t>(columns, 64);
  return rows == 64 ? SampledPanel{rows, step, wide / step * 2, stages - 1} : SampledPanel{128, step, wide / step, stages};
}

static void scheduleSampledTiles(ScheduleBuilder &schedule, Product &product, const SampledPanel &panel) {
  StoredBlock block = product.block();
  std::string entries = product.entries.getName().str();
  StringRef pattern = nameOfOperand(schedule.getNest().getFunction(), product.stored);
  std::string rows = (product.rows + "1").str(), columns = (product.columns + "1").str();
  FormatAttr layout = layoutOfTiles(product, panel.rows, panel.step, block, !panel.within, /*isLinked=*/true);
  constexpr int64_t half = 64; // rows that a consumer's accumulator has
  bool splitsBlocks = block.rows == 2 * half;
  std::optional<int64_t> capacity = panel.within ? std::optional(half / block.rows) : std::nullopt;
  int64_t share = panel.share * capacity.value_or(panel.rows / block.rows * (panel.step / block.columns));
  schedule.split(entries, share);
  std::string parts = entries + "1", consumers = parts + "0";
  if (splitsBlocks) {
    schedule.split(rows, half);
    consumers = rows + "0";
    rows += "1";
  } else {
    schedule.split(parts, share / panel.consumers);
    parts += "1";
  }
  auto [copies, rounds, depth] = cutSum(schedule, product, panel.depth, entries + "0");
  StringRef ahead = rounds;
  if (auto given = schedule.findGiven<PipelineStepAttr>([&](auto step) { return step.getLoop() == ahead; });
      given && given.getStages() > panel.stages)
    schedule.refuse(given, "shared memory has room for " + Twine(panel.stages) + " stages");
  schedule.regroup(pattern, layout, capacity);
  // TF32 goes by mma.sync, which keeps no partial sums; a sum for each copy is short, and shares are many.
  bool isCut = !takesTf32(schedule.getNest()) && !product.hasCopies;
  schedule.balance(entries + "0", 1, 1, panel.within, /*cut=*/std::nullopt,
                   isCut ? std::optional(kParts) : std::nullopt);
  markTiles(schedule, product, consumers, parts, rounds, panel.stages, {rows, columns, depth});
}

std::string lacis::completeSampled(ScheduleBuilder &schedule, const TileSizes &sizes) {
  Nest &nest = schedule.getNest();
  std::string why;
  std::optional<Product> product = productOf(nest, why);
  if (!product)
    return why;
  StoredBlock block = product->block();
  auto eighths = nest.getFunction().getArgAttrOfType<IntegerAttr>(product->stored.getArgNumber(), "lacis.eighths");
  bool gathers = eighths && !product->isLeftAlong && !product->isRightAlong; // gathered tiles stand side by side
  std::optional<SampledPanel> panel;
  if (!block.isNested)
    panel = sizes.sampled(block.rows, block.columns, gathers ? eighths.getInt() : 8);
  TilePanel large = *sizes.panel(kLargest, kLargest);
  if (takesTf32(nest)) { // of which a line has half as many elements
    large.step /= 2;
    if (panel)
      panel->depth /= 2;
  }
  bool fits = !panel && block.columns <= large.columns;
  std::optional<TilePanel> own = fits ? panelOfOwnLevels(block, large) : std::nullopt;
  why = objectionToTiles(nest, *product, panel || own);
  if (!why.empty())
    return why;
  if (own)
    sampleOwnLevels(schedule, *product, *own);
  else
    scheduleSampledTiles(schedule, *product, *panel);
  return "";
}
