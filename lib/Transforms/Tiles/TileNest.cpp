// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the marks of a nest that is to become tiles.
#include "TileNest.h"

using namespace mlir;
using namespace lacis;

int64_t lacis::roundsOf(ArrayRef<LoopOp> loops) {
  int64_t count = 1;
  for (LoopOp loop : loops)
    count *= *loop.getTrip();
  return count;
}

static bool hasLoop(func::FuncOp function, llvm::function_ref<bool(LoopOp)> isMarked) {
  auto stop = [&](LoopOp loop) { return isMarked(loop) ? WalkResult::interrupt() : WalkResult::advance(); };
  return function.walk(stop).wasInterrupted();
}

bool lacis::isTensorized(func::FuncOp function) {
  return hasLoop(function, [](LoopOp loop) { return loop.getTensorize().has_value(); });
}

FailureOr<bool> lacis::readTf32(func::FuncOp function, Value operand) {
  bool isTf32 = hasLoop(function, [](LoopOp loop) { return loop.getTf32(); });
  Type element = getElementTypeOrSelf(operand);
  if (isTf32 && !element.isF32())
    return function.emitError("tiles: products in tf32 are of f32 operands, not of ") << element;
  return isTf32;
}

LogicalResult TileLayout::read(unsigned m, unsigned k) {
  ArrayRef<LevelAttr> levels = format.getLevels();
  if (levels.size() < 5 || format.getNumTileLevels() != 2)
    return failure();
  isLinked = levels[3].getExtent().isLink();
  auto digits = [&](unsigned level) { return levels[level].getDigits(); };
  auto is = [](ArrayRef<Digit> digits, unsigned axis) { return digits.size() == 1 && digits[0].axis == axis; };
  ArrayRef<Digit> bits = digits(2);
  unsigned first = levels.size() - 2;
  transposed = is(digits(first), k);
  unsigned down = transposed ? first + 1 : first, across = transposed ? first : first + 1;
  if (levels.size() != (isLinked ? 6u : 5u) || !is(digits(0), m) || !is(digits(1), k) || !is(digits(down), m) ||
      !is(digits(across), k) || bits.empty() || bits.size() > 2 || bits[0].axis != m)
    return failure();
  panel = digits(0)[0].div;
  step = digits(1)[0].div;
  rows = digits(down)[0].mod;
  columns = digits(across)[0].mod;
  height = bits[0].mod;
  width = bits.size() == 2 ? bits[1].mod : 1;
  bool sides = bits.size() == 1 || (bits[1].axis == k && bits[1].div == columns);
  return success(sides && bits[0].div == rows && panel == rows * height && step == columns * width &&
                 height * width <= 32 && levels[0].getExtent().coversDomain() &&
                 levels[1].getCoordinate().isStored());
}

/// The loops by their marks, outermost first.
static void readLoops(TileNest &nest, ArrayRef<LoopOp> chain) {
  nest.panels = chain[0];
  nest.tiles = chain.size() > 1 ? chain[1] : LoopOp();
  for (LoopOp loop : chain) {
    if (loop.getTensorize() == TileSide::Rows)
      nest.rows *= *loop.getTrip();
    else if (loop.getTensorize() == TileSide::Columns)
      nest.columns *= *loop.getTrip();
    else if (loop.getBind() == ParallelUnit::Warpgroup && loop.getTrip().value_or(0) > 0)
      nest.consumers = loop;
    else if (loop.getJam())
      nest.parts.push_back(loop);
    if (loop.getTensorize() == TileSide::Columns)
      nest.column = loop;
    else if (loop != nest.panels && loop != nest.tiles)
      nest.rowLoops.push_back(loop);
  }
}

/// Every loop of the chain has become something, and only once.
static LogicalResult checkLoops(TileNest &nest, ArrayRef<LoopOp> chain) {
  LoopOp top = chain.front();
  if (!nest.consumers)
    return top.emitError("tiles: no loop is bound to 'warpgroup'; bind the one whose rounds multiply side by side");
  if (!nest.tiles || !nest.tiles.getBalance())
    return top.emitError("tiles: nothing says who works on which tile; balance the second loop of the nest");
  for (LoopOp loop : llvm::drop_begin(chain, 2)) {
    bool known = loop.getTensorize() || loop == nest.consumers || llvm::is_contained(nest.parts, loop);
    if (!known)
      return loop.emitError("tiles: loop '") << loop.getName() << "' is neither tensorized, nor bound to 'warpgroup', "
                                             << "nor jammed";
  }
  if (nest.column && nest.columns == nest.column.getTrip())
    return success();
  return top.emitError("tiles: the columns of a tile are one loop over '")
         << nest.product.columns << "'; tensorize that";
}

static LogicalResult readLayout(TileNest &nest, func::FuncOp function) {
  const Product &product = nest.product;
  unsigned number = product.stored.getArgNumber();
  Operation *top = nest.panels;
  auto mark = function.getArgAttrOfType<LayoutAttr>(number, "lacis.regroup");
  if (!mark)
    return top->emitError("tiles: the stored operand is walked in its own layout; regroup it");
  nest.layout.format = mark.getFormat();
  nest.layout.capacity = mark.getCapacity();
  auto axes = function.getArgAttrOfType<ArrayAttr>(number, "lacis.axes");
  unsigned m = cast<StringAttr>(axes[0]).getValue() == product.rows ? 0 : 1;
  TileLayout &layout = nest.layout;
  if (failed(layout.read(m, 1 - m)))
    return top->emitError("tiles: ") << layout.format << " has not the levels panel, step, bitmap of tiles, and tile";
  if (layout.rows != nest.rows || layout.height != nest.numConsumers() * nest.numParts())
    return top->emitError("tiles: the layout has ") << layout.height << " tiles of " << layout.rows
                                                    << " rows in a panel; the loops make "
                                                    << nest.numConsumers() * nest.numParts() << " of " << nest.rows;
  StoredBlock block = nest.product.block();
  if ((!block.rows && !block.isMatrix) || block.transposed != layout.transposed)
    return top->emitError("tiles: the rows of a tile lie as those of a stored block, in ") << product.format();
  if (layout.isLinked && (block.rows % layout.rows != 0 || block.columns % layout.columns != 0))
    return top->emitError("tiles: tiles of ") << layout.rows << " x " << layout.columns
                                              << " that link to the values are parts of stored blocks";
  if (block.isMatrix && !layout.isLinked)
    return top->emitError("tiles: a dense matrix is read where it lies; let the layout link to the values");
  layout.isFull = layout.isLinked && block.rows % layout.panel == 0 && block.columns % layout.step == 0;
  return success();
}

/// What other parts were summed up to lies as accumulators load it: tile by tile, in each of them row by row.
static LogicalResult checkStart(TileNest &nest) {
  if (!nest.product.start)
    return success();
  FormatAttr format = formatOf(nest.product.start.getTensor());
  const Digit wanted[] = {{0, nest.columns, 0}, {1, nest.rows, 0}, {1, 1, nest.rows}, {0, 1, nest.columns}};
  auto levels = format.getLevels();
  bool fits = levels.size() == 4 && llvm::all_of(llvm::zip(levels, wanted), [](auto pair) {
                auto [level, digit] = pair;
                return level.getDigits().size() == 1 && level.getDigits()[0] == digit;
              });
  if (fits)
    return success();
  return nest.panels->emitError("tiles: what is precomputed lies in tiles of ")
         << nest.rows << " rows and " << nest.columns << " columns, row by row, not in " << format;
}

FailureOr<TileNest> lacis::readTileNest(func::FuncOp function) {
  Nest loops(function);
  TileNest nest;
  std::string why;
  std::optional<Product> product = productOf(loops, why);
  if (!product)
    return function.emitError("tiles: the nest is no product of tiles: ") << why;
  nest.product = *product;
  SmallVector<LoopOp> chain = loops.mainChain();
  readLoops(nest, chain);
  if (failed(checkLoops(nest, chain)))
    return failure();
  WorkListsAttr lists = nest.tiles.getBalanceAttr();
  nest.raster = lists.getRaster();
  nest.groups = lists.getGroups();
  nest.cut = lists.getCut().value_or(nest.cut);
  if (nest.cut && (nest.product.start || nest.product.block().isMatrix))
    return nest.tiles.emitError(
        "tiles: rows are cut of one stored operand; what is precomputed, and a dense matrix, are not");
  std::optional<uint64_t> stages = cast<LoopOpInterface>(nest.product.sum).getPipeline();
  if (!stages)
    return nest.product.sum->emitError("tiles: loop '") << nest.product.sumName() << "' loads nothing ahead; "
                                                        << "pipeline it";
  nest.stages = *stages;
  SmallVector<Value> operands{nest.product.stored, nest.product.right};
  if (std::optional<ReadOp> residual = nest.product.residual(); residual && *residual)
    operands.push_back(residual->getTensor());
  for (Value operand : operands) {
    unsigned number = cast<BlockArgument>(operand).getArgNumber();
    if (!function.getArgAttr(number, "lacis.staged"))
      return chain.front().emitError("tiles: operand ")
             << function.getArgAttr(number, "lacis.name") << " is not staged in 'shared'";
  }
  FailureOr<bool> isTf32 = readTf32(function, nest.product.right);
  if (failed(isTf32) || failed(readLayout(nest, function)) || failed(checkStart(nest)))
    return failure();
  nest.isTf32 = *isTf32;
  return nest;
}
