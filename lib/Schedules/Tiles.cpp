// SPDX-License-Identifier: Apache-2.0
/// \file
/// The default schedule of tensor cores. Products with stored blocks become tiles, if they are of a half type or may
/// take TF32. An architecture says the sizes of the tiles. Every other nest gets the default schedule of any GPU.
#include "TileConditions.h"
#include "lacis/Dialect/Lacis/IR/BlockMemory.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace lacis;

/// Work lists are made for so many groups of `raster` tiles of the dense axis. The load of each worker is carried on from
/// group to group. 16 groups of 1024 tokens are 16384 tokens. After the last group the lists are used again.
static constexpr int64_t kGroups = 16;
/// Long rows of an uneven pattern are cut for up to so many tiles of the dense axis. With more tiles the rows come out
/// even over the processors without a cut (docs/tensor-cores.md, "Long rows, and few shares").
static constexpr int64_t kCut = 8;
/// The sum of a share is split into up to so many parts. 16 and 32 parts were measured, and gained only with few shares
/// in blocks of 16.
static constexpr int64_t kParts = 8;

static StringRef nameOf(func::FuncOp function, BlockArgument operand) {
  return function.getArgAttrOfType<StringAttr>(operand.getArgNumber(), "lacis.name").getValue();
}

/// The panel for float32, of which a line of 128 bytes has half as many elements as of a half type.
static TilePanel inSingles(TilePanel panel) {
  panel.step /= 2;
  panel.tileRows = std::min(panel.tileRows, panel.step);
  panel.tile = std::min(panel.tile, panel.step);
  return panel;
}

/// Panels of so many rows, in steps of so many columns, of tiles. One tile beside the other has no digit, but where a
/// product is sampled.
static FormatAttr layoutOf(const Product &product, int64_t rows, int64_t step, StoredBlock tile, bool isUnique,
                           bool isLinked) {
  auto function = cast<func::FuncOp>(product.stored.getOwner()->getParentOp());
  auto marks = function.getArgAttrOfType<ArrayAttr>(product.stored.getArgNumber(), "lacis.axes");
  auto axes = llvm::to_vector(marks.getAsValueRange<StringAttr>()); // the last two are of the pattern that copies share
  StringRef m = product.rows, k = product.isSampled() ? product.columns : product.depth;
  int64_t height = rows / tile.rows, width = step / tile.columns;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "#lacis.format<(" << axes[axes.size() - 2] << ", " << axes.back() << ") -> (" << m << " floordiv " << rows
      << " : dense, " << k << " floordiv " << step << " : compressed" << (isUnique ? "" : "<unique=false>") << ", ";
  if (width == 1 && !product.isSampled())
    out << m << " floordiv " << tile.rows << " mod " << height << " : bitmap, ";
  else
    out << "(" << m << " floordiv " << tile.rows << " mod " << height << ", " << k << " floordiv " << tile.columns
        << " mod " << width << ") : bitmap, ";
  std::pair first(m, tile.rows), last(k, tile.columns);
  if (tile.transposed)
    std::swap(first, last);
  out << (isLinked ? "link, " : "") << first.first << " mod " << first.second << " : dense, " << last.first << " mod "
      << last.second << " : dense)>";
  return cast<FormatAttr>(parseAttribute(text, function.getContext()));
}

/// Marks the loops of tiles: the rounds of `consumers` are side by side, those of `parts` one after another, and the
/// loops in `tile` are one product.
static void markTiles(ScheduleBuilder &schedule, Product &product, const std::string &consumers,
                      ArrayRef<std::string> parts, const std::string &sum, int64_t stages,
                      const std::vector<std::string> &tile) {
  schedule.bind(consumers, "warpgroup");
  for (const std::string &part : parts)
    schedule.jam(part);
  SmallVector<BlockArgument> operands{product.left, product.right};
  if (ReadOp residual = product.write ? *product.residual() : ReadOp())
    operands.push_back(cast<BlockArgument>(residual.getTensor()));
  for (BlockArgument operand : operands)
    schedule.stage(nameOf(schedule.getNest().getFunction(), operand), "shared");
  schedule.pipeline(sum, stages);
  schedule.tensorize(tile, takesTf32(schedule.getNest()) ? "tf32" : "");
}

namespace {
/// The names of the loops over rows, by what a round becomes: a panel, a consumer, an accumulator, a row of a tile.
struct RowLoops {
  std::string panels, consumers;
  std::vector<std::string> parts, rows;
};
} // namespace

/// Splits the loops over rows, so that one loop each runs over panels, consumers and row tiles.
static RowLoops cutRows(ScheduleBuilder &schedule, const TilePanel &panel, SmallVector<RowLoop> loops) {
  const int64_t each = panel.rows / panel.consumers;
  for (int64_t size : {panel.rows, each, panel.tileRows}) {
    auto *cut = llvm::find_if(loops, [&](const RowLoop &loop) {
      return loop.unit < size && (loop.rounds == 0 || size < loop.unit * loop.rounds);
    });
    if (cut == loops.end())
      continue;
    int64_t factor = size / cut->unit;
    RowLoop inner{cut->name + "1", cut->unit, factor};
    schedule.split(cut->name, factor);
    *cut = {cut->name + "0", size, cut->rounds / factor};
    loops.insert(std::next(cut), inner);
  }
  RowLoops found;
  for (RowLoop &loop : loops) {
    if (loop.unit >= panel.rows)
      found.panels = loop.name;
    else if (loop.unit >= each)
      found.consumers = loop.name;
    else
      (loop.unit >= panel.tileRows ? found.parts : found.rows).push_back(loop.name);
  }
  return found;
}

/// Splits a loop that stands with those over the matrices of a batch: with them, where these are one axis. Answers the loops
/// around the inner one, and that.
static std::pair<std::vector<std::string>, std::string> cutWithBatch(ScheduleBuilder &schedule, const Product &product,
                                                                     std::string loop, int64_t size) {
  std::vector<std::string> around(product.batch.begin(), product.batch.end());
  if (product.isFolded) {
    around.push_back(loop);
    loop = schedule.fuse(around);
    around.clear();
  }
  schedule.split(loop, size);
  around.push_back(loop + "0");
  return {around, loop + "1"};
}

/// Splits the loop over columns, and makes one loop over the tiles of all matrices. Answers the names of that and of the
/// loop over the columns of a tile.
static std::pair<std::string, std::string> cutColumns(ScheduleBuilder &schedule, const Product &product,
                                                      const TilePanel &panel, const RowLoops &rows) {
  auto [around, columns] = cutWithBatch(schedule, product, product.columns.str(), panel.columns);
  std::vector<std::string> order{rows.panels};
  llvm::append_range(order, around);
  order.push_back(rows.consumers);
  llvm::append_range(order, rows.parts);
  llvm::append_range(order, rows.rows);
  order.push_back(columns);
  schedule.reorder(order);
  return {schedule.fuse(around), columns};
}

static void scheduleTiles(ScheduleBuilder &schedule, Product &product, const TilePanel &panel,
                          MutableArrayRef<LoopOp> rows) {
  StringRef stored = nameOf(schedule.getNest().getFunction(), product.stored);
  StoredBlock block = product.block();
  StoredBlock stage{panel.tileRows, panel.tile, block.transposed};
  FormatAttr layout = layoutOf(product, panel.rows, panel.step, stage, !panel.capacity, panel.isLinked);
  std::string sum = product.sumName().str();
  std::vector<std::string> tile;
  product.sum->walk([&](LoopOp loop) {
    if (loop != product.sum)
      tile = {loop.getName().str()};
  });
  RowLoops cut = cutRows(schedule, panel, rowLoops(rows));
  auto [tiles, columns] = cutColumns(schedule, product, panel, cut);
  schedule.regroup(stored, layout, panel.capacity);
  bool isUneven = letterHas(schedule.getNest(), product.rows, "lacis.uneven");
  bool isWhole = product.start || block.isMatrix;
  schedule.balance(tiles, panel.raster, kGroups, std::nullopt,
                   isUneven && !isWhole ? std::optional(kCut) : std::nullopt);
  llvm::append_range(tile, cut.rows);
  tile.push_back(columns);
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

//===- Sampled products ---------------------------------------------------===//

std::optional<SampledPanel> lacis::sharesOf(int64_t rows, int64_t columns, int64_t wide, int64_t stages) {
  auto known = [](int64_t size) { return size == 16 || size == 32 || size == 64 || size == 128; };
  if (!known(rows) || !known(columns) || (rows == 128 && columns < 64))
    return std::nullopt;
  int64_t step = std::max<int64_t>(columns, 64);
  return rows == 64 ? SampledPanel{rows, step, wide / step * 2, stages - 1} : SampledPanel{128, step, wide / step, stages};
}

/// Splits the sum, which is one with those over the matrices of a batch. Copies have a loop of their own. Answers the names
/// of the loops over the rounds and over the depth of one.
static std::pair<std::string, std::string> cutSum(ScheduleBuilder &schedule, Product &product,
                                                  const SampledPanel &panel, const std::string &shares) {
  auto [around, depth] = cutWithBatch(schedule, product, product.sumName().str(), panel.depth);
  std::string rounds = around.back();
  if (!product.hasCopies)
    return {schedule.fuse(around), depth};
  around.pop_back();
  schedule.reorder({shares, schedule.fuse(around)});
  return {rounds, depth};
}

static void scheduleSampledTiles(ScheduleBuilder &schedule, Product &product, const SampledPanel &panel) {
  StoredBlock block = product.block();
  std::string entries = product.entries.getName().str();
  StringRef pattern = nameOf(schedule.getNest().getFunction(), product.stored);
  std::string rows = (product.rows + "1").str(), columns = (product.columns + "1").str();
  FormatAttr layout = layoutOf(product, panel.rows, panel.step, block, !panel.within, /*isLinked=*/true);
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
  auto [rounds, depth] = cutSum(schedule, product, panel, entries + "0");
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

/// Schedules a sampled product on tensor cores, or answers why tiles cannot take it.
static std::string completeSampled(ScheduleBuilder &schedule, const TileSizes &sizes) {
  Nest &nest = schedule.getNest();
  std::string why;
  std::optional<Product> product = productOf(nest, why);
  if (!product)
    return why;
  StoredBlock block = product->block();
  auto eighths = nest.getFunction().getArgAttrOfType<IntegerAttr>(product->stored.getArgNumber(), "lacis.eighths");
  bool gathers = eighths && !product->isLeftAlong && !product->isRightAlong; // gathered tiles stand side by side
  std::optional<SampledPanel> panel = sizes.sampled(block.rows, block.columns, gathers ? eighths.getInt() : 8);
  if (panel && takesTf32(nest))
    panel->depth /= 2;
  why = objectionToTiles(nest, *product, panel.has_value());
  if (why.empty())
    scheduleSampledTiles(schedule, *product, *panel);
  return why;
}

//===- All products -------------------------------------------------------===//

/// Elements of a stage of shared memory.
static int64_t stageElements(const TilePanel &panel) {
  int64_t stored = panel.capacity ? *panel.capacity * panel.tileRows * panel.tile : panel.rows * panel.step;
  return stored + panel.columns * panel.step;
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
/// stages. Others follow: as many stages as there is room for, and groups of as many tokens.
static TilePanel asGiven(ScheduleBuilder &schedule, TilePanel panel, Product &product) {
  auto isLoop = [](StringRef name) { return [name](auto step) { return step.getLoop() == name; }; };
  StringRef stored = nameOf(schedule.getNest().getFunction(), product.stored);
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
      panel.raster = panel.raster * panel.columns / columns;
      panel.columns = columns;
      panel.stages = room / stageElements(panel);
    }
  }
  auto ahead = schedule.findGiven<PipelineStepAttr>(isLoop(product.sumName().str()));
  if (int64_t most = room / stageElements(panel); ahead && ahead.getStages() > most)
    schedule.refuse(ahead, "shared memory has room for " + Twine(most) + " stages");
  return panel;
}

/// The panel for the stored blocks of a product.
static std::optional<TilePanel> panelOf(Nest &nest, Product &product, const TileSizes &sizes) {
  constexpr int64_t largest = 128; // a dense matrix is scheduled like blocks of 128, the largest that have a panel
  StoredBlock block = product.block();
  std::optional<TilePanel> panel =
      block.isMatrix ? sizes.panel(largest, largest) : sizes.panel(block.rows, block.columns);
  return panel && takesTf32(nest) && panel->step == TilePanel::kHalves ? inSingles(*panel) : panel;
}

/// Schedules a product on tensor cores, or answers why tiles cannot take it.
static std::string completeProduct(ScheduleBuilder &schedule, const TileSizes &sizes) {
  Nest &nest = schedule.getNest();
  std::string why;
  std::optional<Product> product = productForTiles(nest, sizes, why);
  if (!product)
    return why;
  std::optional<TilePanel> panel = panelOf(nest, *product, sizes);
  why = objectionToTiles(nest, *product, panel.has_value(), panel && panel->tileRows == panel->step);
  if (!why.empty())
    return why;
  SmallVector<LoopOp> rows = loopsOf(nest.mainChain(), product->rows);
  panel = asGiven(schedule, withRoom(*panel, nest.getFunction(), product->stored), *product);
  if (product->tensor.getDefiningOp<PartOp>())
    product = precomputeOthers(schedule, *product, *panel);
  else
    scheduleFew(schedule);
  if (succeeded(schedule.getResult()))
    scheduleTiles(schedule, *product, *panel, rows);
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
