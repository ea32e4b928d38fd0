// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of tensor cores. Products with stored blocks become tiles, if they are of a half type or may
/// take TF32. An architecture says the sizes of the tiles. Every other nest gets the default schedule of any GPU.
#include "TileSteps.h"
#include "lacis/Dialect/Lacis/IR/BlockMemory.h"

using namespace mlir;
using namespace lacis;

/// Work lists are made for so many groups of `raster` tiles of the dense axis. The load of each worker is carried on from
/// group to group. 16 groups of 1024 tokens are 16384 tokens. After the last group the lists are used again.
static constexpr int64_t kGroups = 16;
/// Long rows of an uneven pattern are cut for up to so many tiles of the dense axis. With more tiles the rows come out
/// even over the processors without a cut (docs/tensor-cores.md, "Long rows, and few shares").
static constexpr int64_t kCut = 8;

/// Splits the loop over columns, and makes one loop over the tiles of all matrices. Answers the names of that and of the
/// loop over the columns of a tile.
static std::pair<std::string, std::string> cutColumns(ScheduleBuilder &schedule, const Product &product,
                                                      const TilePanel &panel, const TileRows &rows) {
  auto [around, columns] = cutWithBatch(schedule, product, product.columns.str(), panel.columns);
  std::vector<std::string> order(rows.panels);
  llvm::append_range(order, around);
  order.push_back(rows.consumers);
  llvm::append_range(order, rows.parts);
  llvm::append_range(order, rows.rows);
  order.push_back(columns);
  schedule.reorder(order);
  schedule.fuse(rows.panels); // levels may have cut them
  return {schedule.fuse(around), columns};
}

/// A residual of a half type that is as large as a tile of the dense operand, and lies as that, arrives in its place; the
/// elements of others are read where they lie.
static bool fitsDenseTile(const Product &product, const TilePanel &panel) {
  bool isHalf = !getElementTypeOrSelf(product.right).isF32();
  return isHalf && panel.tileRows == panel.step && product.isRightAlong != product.isRowsFirst;
}

static void scheduleTiles(ScheduleBuilder &schedule, Product &product, const TilePanel &panel,
                          MutableArrayRef<LoopOp> rows) {
  StringRef stored = nameOfOperand(schedule.getNest().getFunction(), product.stored);
  StoredBlock block = product.block();
  StoredBlock stage{panel.tileRows, panel.tile, block.transposed};
  FormatAttr layout = layoutOfTiles(product, panel.rows, panel.step, stage, !panel.capacity, panel.isLinked);
  std::string sum = product.sumName().str();
  std::vector<std::string> tile;
  if (LoopOp depth = depthLoop(product))
    tile.push_back(depth.getName().str());
  TileRows cut = cutRows(schedule, panel, rowLoops(rows));
  auto [tiles, columns] = cutColumns(schedule, product, panel, cut);
  schedule.regroup(stored, layout, panel.capacity);
  bool isUneven = letterHas(schedule.getNest(), product.rows, "lacis.uneven");
  bool isWhole = product.start || block.isMatrix;
  schedule.balance(tiles, panel.raster, kGroups, std::nullopt,
                   isUneven && !isWhole ? std::optional(kCut) : std::nullopt);
  llvm::append_range(tile, cut.rows);
  tile.push_back(columns);
  if (ReadOp residual = *product.residual(); residual && fitsDenseTile(product, panel))
    schedule.stage(nameOfOperand(schedule.getNest().getFunction(), cast<BlockArgument>(residual.getTensor())), "shared");
  markTiles(schedule, product, cut.consumers, cut.parts, sum, panel.stages, tile);
}

//===- Sums ---------------------------------------------------------------===//

/// Is each part of the sum one loop in the block of `walk`? Each carries the sum on to the next.
static bool areSideBySide(ArrayRef<StringRef> parts, Operation *walk) {
  return llvm::all_of(parts, [&](StringRef part) {
    return llvm::count_if(*walk->getBlock(), [&](Operation &op) { return isInPart(&op, part); }) == 1;
  });
}

/// The product that becomes tiles. Of a sum of formats it is that of the part with the largest blocks that have a panel.
static std::optional<Product> productForTiles(Nest &nest, const TileSizes &sizes, std::string &why) {
  SmallVector<StringRef> parts = nest.parts();
  if (parts.size() < 2)
    return productOf(nest, why);
  std::optional<Product> best;
  why = "no part of the sum has stored blocks that fill a tile";
  int64_t largest = 0;
  std::string unused;
  for (StringRef part : parts) {
    std::optional<Product> product = productOf(nest, unused, part);
    StoredBlock block = product ? product->block() : StoredBlock();
    if (product && !product->batch.empty())
      return why = "what a sum of formats multiplies has letters of a batch; fold them into one axis", std::nullopt;
    if (block.rows * block.columns > largest && sizes.panel(block.rows, block.columns) &&
        areSideBySide(parts, product->sum)) {
      largest = block.rows * block.columns;
      best = product;
    }
  }
  return best;
}

/// Computes the other parts of a sum before. Their result lies in a workspace, from which accumulators start.
static Product precomputeOthers(ScheduleBuilder &schedule, Product product, const TilePanel &panel) {
  Nest &nest = schedule.getNest();
  auto own = product.tensor.getDefiningOp<PartOp>();
  FormatAttr layout =
      accumulatorTiles(nest.getFunction().getContext(), product.columns, product.rows, panel.columns, panel.tileRows);
  SmallVector<StringRef> others = nest.parts();
  llvm::erase(others, own.getName());
  for (StringRef part : others)
    schedule.precompute(part, layout);
  for (StringRef part : others)
    schedulePrecomputed(schedule, part);
  std::string why;
  return productOf(nest, why).value_or(product);
}

//===- All products -------------------------------------------------------===//

/// Elements of a stage of shared memory.
static int64_t stageElements(const TilePanel &panel) {
  int64_t stored = panel.capacity ? *panel.capacity * panel.tileRows * panel.tile : panel.rows * panel.step;
  return stored + panel.columns * panel.step;
}

/// The panel with other columns: as many stages as there is room for, and groups of as many tokens.
static TilePanel withColumns(TilePanel panel, int64_t columns) {
  int64_t room = panel.stages * stageElements(panel);
  panel.raster = panel.raster * panel.columns / columns;
  panel.columns = columns;
  panel.stages = room / stageElements(panel);
  return panel;
}

/// The panel for float32, of which a line of 128 bytes has half as many elements as of a half type. A dense operand that does
/// not lie along the depth is read by four loads for one of halves, whose addresses take the registers of a third of 192
/// columns: with these threads spilled up to 292 bytes, and blocks of 128 took 10 % longer (docs/tensor-cores.md, TF32).
static TilePanel inSingles(TilePanel panel, const Product &product) {
  constexpr int64_t mostAcross = 128;
  panel.step /= 2;
  panel.tileRows = std::min(panel.tileRows, panel.step);
  panel.tile = std::min(panel.tile, panel.step);
  return product.isRightAlong || panel.columns <= mostAcross ? panel : withColumns(panel, mostAcross);
}

/// The panel with another capacity, and with the stages that then fit.
static TilePanel withCapacity(TilePanel panel, int64_t capacity) {
  constexpr int64_t storeBytes = 27 << 10, sharedBytes = kMostBlockBytes - storeBytes, elementBytes = 2; // on sm_90a
  panel.capacity = capacity;
  panel.stages = sharedBytes / (stageElements(panel) * elementBytes);
  return panel;
}

/// A step of a panel has at most 24 tiles: 6 along the rows by 4 along the columns.
static constexpr int64_t kMostTiles = 24;

/// The panel with the capacity that `lacis.slabs` of the operand asks for.
static TilePanel withRoom(TilePanel panel, func::FuncOp function, BlockArgument stored) {
  auto slabs = function.getArgAttrOfType<IntegerAttr>(stored.getArgNumber(), "lacis.slabs");
  bool isAsked = panel.capacity && slabs && slabs.getInt() >= 1 && slabs.getInt() <= kMostTiles;
  return isAsked ? withCapacity(panel, slabs.getInt()) : panel;
}

/// Fills the holes of the template by steps that the user gave: the tiles of a stage, the columns of a tile, and the
/// stages.
static TilePanel asGiven(ScheduleBuilder &schedule, TilePanel panel, Product &product) {
  auto isLoop = [](StringRef name) { return [name](auto step) { return step.getLoop() == name; }; };
  StringRef stored = nameOfOperand(schedule.getNest().getFunction(), product.stored);
  auto layout = schedule.findGiven<RegroupStepAttr>([&](auto step) { return step.getOperand() == stored; });
  if (layout && layout.getCapacity() && panel.capacity) {
    if (*layout.getCapacity() > kMostTiles)
      schedule.refuse(layout, "a stage has at most " + Twine(kMostTiles) + " tiles");
    else if (*layout.getCapacity() > 0)
      panel = withCapacity(panel, *layout.getCapacity());
  }
  int64_t room = panel.stages * stageElements(panel);
  if (auto tile = schedule.findGiven<SplitStepAttr>(isLoop(product.columnLoop()))) {
    int64_t columns = tile.getFactor();
    if (columns < 1 || columns > panel.columns || columns % panel.columnUnit != 0) {
      schedule.refuse(tile, "tiles have a multiple of " + Twine(panel.columnUnit) + " columns, up to " +
                                Twine(panel.columns));
    } else {
      panel = withColumns(panel, columns);
    }
  }
  auto ahead = schedule.findGiven<PipelineStepAttr>(isLoop(product.sumName().str()));
  if (int64_t most = room / stageElements(panel); ahead && ahead.getStages() > most)
    schedule.refuse(ahead, "shared memory has room for " + Twine(most) + " stages");
  return panel;
}

/// The panel for the stored blocks of a product.
static std::optional<TilePanel> panelOf(Nest &nest, Product &product, const TileSizes &sizes) {
  StoredBlock block = product.block();
  std::optional<TilePanel> panel;
  if (!block.isNested)
    panel = block.isMatrix ? sizes.panel(kLargest, kLargest) : sizes.panel(block.rows, block.columns);
  if (!panel)
    panel = panelOfOwnLevels(block, *sizes.panel(kLargest, kLargest));
  return panel && takesTf32(nest) && panel->step == TilePanel::kHalves ? inSingles(*panel, product) : panel;
}

/// Nests for few tokens walk the stored blocks. Where that takes an index by the other axis, which tiles need not, each
/// pattern has one more array, and training derives it anew with every new pattern. Elements that are read one by one are
/// not worth that: such products are gradients, most of all.
static bool walksForFew(const Product &product) {
  auto walk = dyn_cast<LevelLoopOp>(product.sum);
  bool hasIndex = walk && walk.getTensor().getDefiningOp<WalkOp>();
  return !hasIndex || (product.isRightAlong && !product.block().transposed);
}

/// Schedules a product on tensor cores, or answers why tiles cannot take it.
static std::string completeProduct(ScheduleBuilder &schedule, const TileSizes &sizes) {
  Nest &nest = schedule.getNest();
  std::string why;
  std::optional<Product> product = productForTiles(nest, sizes, why);
  if (!product)
    return why;
  std::optional<TilePanel> panel = panelOf(nest, *product, sizes);
  why = objectionToTiles(nest, *product, panel.has_value());
  if (!why.empty())
    return why;
  SmallVector<LoopOp> rows = loopsOf(nest.mainChain(), product->rows);
  panel = asGiven(schedule, withRoom(*panel, nest.getFunction(), product->stored), *product);
  if (product->tensor.getDefiningOp<PartOp>())
    product = precomputeOthers(schedule, *product, *panel);
  else if (walksForFew(*product))
    scheduleFew(schedule);
  if (succeeded(schedule.getResult()))
    panel->walksOwnLevels ? scheduleOwnLevels(schedule, *product, *panel) : scheduleTiles(schedule, *product, *panel, rows);
  return "";
}

Rule lacis::ruleOfTiles(std::function<TileSizes(Nest &nest)> sizesOf) {
  auto take = [sizesOf = std::move(sizesOf)](ScheduleBuilder &schedule) -> std::string {
    Nest &nest = schedule.getNest();
    if (nest.getFunction()->hasAttr("lacis.plain"))
      return "NaN and infinity are kept to the outputs of kept entries (strict), which tiles may spread";
    if (LevelLoopOp round = rolledLoop(nest))
      return scheduleRolled(schedule, round, sizesOf(nest).rolled), "";
    return (isSampled(nest) ? completeSampled : completeProduct)(schedule, sizesOf(nest));
  };
  return {kTiles.str(), kRankOfTiles, take};
}
