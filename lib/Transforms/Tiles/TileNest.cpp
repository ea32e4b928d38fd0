// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the marks of a nest that is to become tiles.
#include "TileNest.h"

#include "TileStatements.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

int64_t lacis::roundsOf(ArrayRef<LoopOp> loops) {
  int64_t count = 1;
  for (LoopOp loop : loops)
    count *= *loop.getTrip();
  return count;
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

/// The loops by their marks, outermost first. Of a sampled product those inside of the first over its entries say how
/// many blocks a share has.
static void readLoops(TileNest &nest, ArrayRef<LoopOp> chain, SmallVectorImpl<LoopOp> &open) {
  bool isSampled = nest.product.isSampled();
  nest.top = isSampled ? nest.product.entries : chain[0];
  nest.items = isSampled ? nest.top : chain.size() > 1 ? chain[1] : LoopOp();
  nest.top->walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    bool isOfChain = llvm::is_contained(chain, loop);
    bool isOfEntries = isSampled && isOfChain && loop != nest.top && letterOf(loop.getName()) == letterOf(nest.top.getName());
    std::optional<TileSide> side = loop.getTensorize();
    bool isBound = loop.getBind() == ParallelUnit::Warpgroup && loop.getTrip().value_or(0) > 0;
    bool isPart = loop.getJam() && !isSampled;
    if (isBound)
      nest.consumers = loop;
    if (isPart)
      nest.parts.push_back(loop);
    if (isOfEntries)
      nest.blocks *= loop.getTrip().value_or(1);
    else if (side == TileSide::Columns)
      nest.columnLoops.push_back(loop);
    else if (side == TileSide::Depth)
      nest.depthLoops.push_back(loop);
    else if (side || isBound || isPart)
      nest.rowLoops.push_back(loop);
    bool isAround = loop == nest.top || loop == nest.items || loop == nest.product.sum ||
                    llvm::is_contained(nest.product.batchLoops, loop) || !(isSampled || isOfChain);
    if (!isAround && !side && !isBound && !isPart && !(isOfEntries && loop.getJam()))
      open.push_back(loop);
  });
}

/// Every loop of the chain has become something, and only once.
static LogicalResult checkLoops(TileNest &nest, ArrayRef<LoopOp> open) {
  LoopOp top = nest.top;
  if (!nest.consumers)
    return top.emitError("tiles: no loop is bound to 'warpgroup'; bind the one whose rounds multiply side by side");
  if (!nest.items || !nest.items.getBalance()) {
    InFlightDiagnostic error = top.emitError("tiles: nothing says who works on which ");
    if (nest.product.isSampled())
      return error << "blocks; balance loop '" << top.getName() << "'";
    return error << "tile; balance the second loop of the nest";
  }
  if (!open.empty())
    return LoopOp(open[0]).emitError("tiles: loop '") << LoopOp(open[0]).getName()
                                                      << "' is neither tensorized, nor bound to 'warpgroup', nor jammed";
  if (nest.product.isSampled() || nest.columnLoops.size() == 1)
    return success();
  return top.emitError("tiles: the columns of a tile are one loop over '")
         << nest.product.columns << "'; tensorize that";
}

/// Steps are of blocks of one column, which are gathered from anywhere in the panel.
static LogicalResult readGathered(TileNest &nest) {
  constexpr int64_t tile = 64;
  const TileLayout &layout = nest.layout;
  int64_t capacity = *layout.capacity;
  if (capacity * layout.rows != tile || layout.width != 1 || layout.panel % tile != 0 ||
      *nest.lists.getWithin() % tile != 0)
    return nest.top.emitError("tiles: steps are gathered that have 64 rows of blocks of one column; the rows of a panel "
                              "and the columns of a share are a multiple of 64");
  nest.share = nest.blocks / capacity;
  if (llvm::is_contained(nest.rowLoops, nest.consumers) || nest.blocks % capacity != 0 ||
      nest.share % nest.numConsumers() != 0)
    return nest.top.emitError("tiles: the blocks of a share are so many steps for each consumer; ")
           << capacity << " blocks are a step";
  return success();
}

/// The steps of a share, and who has which of its rows.
static LogicalResult readShare(TileNest &nest) {
  TileLayout &layout = nest.layout;
  LoopOp top = nest.top;
  StoredBlock block = nest.product.block();
  if (layout.transposed || layout.rows != block.rows || layout.columns != block.columns ||
      roundsOf(nest.rowLoops) != block.rows || roundsOf(nest.columnLoops) != block.columns)
    return top.emitError("tiles: the tiles of the layout are the stored blocks, of ")
           << block.rows << " x " << block.columns << ", and so are the loops that are tensorized";
  if (nest.isGathered())
    return readGathered(nest);
  nest.rowGroups = layout.panel / 64;
  bool isOfAll = nest.rowGroups == 1 && !llvm::is_contained(nest.rowLoops, nest.consumers);
  if (layout.panel % 64 != 0 || (nest.rowGroups != nest.numConsumers() && !isOfAll))
    return top.emitError("tiles: a panel has ") << layout.panel << " rows; 64 of each of " << nest.numConsumers()
                                                << " consumers, or 64 of all of them";
  if (nest.blocks % layout.tilesPerStep() != 0)
    return top.emitError("tiles: a share has room for ")
           << nest.blocks << " blocks, and a step of the layout for " << layout.tilesPerStep();
  nest.share = nest.blocks / layout.tilesPerStep();
  if (!nest.splitsRows() && nest.share % nest.numConsumers() != 0)
    return top.emitError("tiles: ") << nest.share << " steps of a share are not to be divided by "
                                    << nest.numConsumers() << " consumers";
  layout.isFull = layout.tilesPerStep() == 1;
  if (block.rows > 64 && !layout.isFull)
    return top.emitError("tiles: stored blocks of more than 64 rows are a step of the layout each");
  return success();
}

/// The stored tiles of a panel, and where their rows lie.
static LogicalResult readPanel(TileNest &nest) {
  TileLayout &layout = nest.layout;
  LoopOp top = nest.top;
  if (layout.rows != nest.rows || layout.height != nest.numConsumers() * nest.numParts())
    return top.emitError("tiles: the layout has ") << layout.height << " tiles of " << layout.rows
                                                   << " rows in a panel; the loops make "
                                                   << nest.numConsumers() * nest.numParts() << " of " << nest.rows;
  StoredBlock block = nest.product.block();
  if ((!block.rows && !block.isMatrix) || block.transposed != layout.transposed)
    return top.emitError("tiles: the rows of a tile lie as those of a stored block, in ") << nest.product.format();
  if (layout.isLinked && (block.rows % layout.rows != 0 || block.columns % layout.columns != 0))
    return top.emitError("tiles: tiles of ") << layout.rows << " x " << layout.columns
                                             << " that link to the values are parts of stored blocks";
  if (block.isMatrix && !layout.isLinked)
    return top.emitError("tiles: a dense matrix is read where it lies; let the layout link to the values");
  int64_t line = nest.sideOf(layout.step);
  if (layout.width > 1 && nest.product.isRightAlong && layout.step > line)
    return top.emitError("tiles: a step has ") << layout.step << " columns in several tiles, which are more than a line of "
                                               << line << " elements of the dense operand";
  layout.isFull = layout.isLinked && block.rows % layout.panel == 0 && block.columns % layout.step == 0;
  return success();
}

static LogicalResult readLayout(TileNest &nest, func::FuncOp function) {
  unsigned number = nest.product.stored.getArgNumber();
  bool isSampled = nest.product.isSampled();
  auto mark = function.getArgAttrOfType<LayoutAttr>(number, "lacis.regroup");
  if (!mark)
    return nest.top.emitError("tiles: the ") << (isSampled ? "pattern" : "stored operand")
                                             << " is walked in its own layout; regroup it";
  TileLayout &layout = nest.layout;
  layout.format = mark.getFormat();
  layout.capacity = mark.getCapacity();
  ArrayRef<Attribute> axes = axesOf(function, number).take_back(2);
  unsigned m = cast<StringAttr>(axes[0]).getValue() == nest.product.rows ? 0 : 1;
  bool isRead = succeeded(layout.read(m, 1 - m));
  bool isOfShares = layout.isLinked && layout.capacity.has_value() == nest.isGathered();
  if (!isRead || (isSampled && !isOfShares))
    return nest.top.emitError("tiles: ") << layout.format << " has not the levels panel, step, bitmap of "
                                         << (isSampled ? "blocks, link, and block" : "tiles, and tile");
  if (!isSampled) {
    nest.rows = 1;
    for (LoopOp loop : nest.rowLoops)
      nest.rows *= loop.getTensorize() ? *loop.getTrip() : 1;
    nest.columns = roundsOf(nest.columnLoops);
    return readPanel(nest);
  }
  LogicalResult result = readShare(nest);
  nest.rows = 64;
  nest.columns = nest.ownSteps() * layout.step;
  return result;
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
  return nest.top->emitError("tiles: what is precomputed lies in tiles of ")
         << nest.rows << " rows and " << nest.columns << " columns, row by row, not in " << format;
}

/// What is loaded ahead, from where, and whose work is cut.
static LogicalResult readLoads(TileNest &nest, func::FuncOp function) {
  Product &product = nest.product;
  std::optional<uint64_t> stages = cast<LoopOpInterface>(product.sum).getPipeline();
  if (!stages)
    return product.sum->emitError("tiles: loop '") << product.sumName().str() << "' loads nothing ahead; pipeline it";
  nest.stages = *stages;
  for (Value operand : {product.left, product.right})
    if (unsigned number = cast<BlockArgument>(operand).getArgNumber(); !function.getArgAttr(number, "lacis.staged"))
      return nest.top.emitError("tiles: operand ")
             << function.getArgAttr(number, "lacis.name") << " is not staged in 'shared'";
  Type element = getElementTypeOrSelf(product.right);
  function.walk([&](LoopOp loop) { nest.isTf32 |= loop.getTf32(); });
  if (nest.isTf32 && !element.isF32())
    return function.emitError("tiles: products in tf32 are of f32 operands, not of ") << element;
  if (nest.lists.getCut() && (product.start || product.block().isMatrix))
    return nest.items.emitError(
        "tiles: rows are cut of one stored operand; what is precomputed, and a dense matrix, are not");
  if (product.batchLoops.size() != (product.hasCopies ? 1 : 0))
    return product.sum->emitError("tiles: letters of a batch have one loop, of copies in a share, else with loop '")
           << product.sumName().str() << "'; fuse them";
  if (nest.lists.getParts() && product.hasCopies)
    return nest.top.emitError("tiles: sums of values in copies that share a pattern are not cut into 'parts'");
  if (nest.lists.getParts() && nest.isTf32)
    return nest.top.emitError("tiles: sums of shares in tf32 are not cut into 'parts'");
  return success();
}

FailureOr<TileNest> lacis::readTileNest(func::FuncOp function) {
  Nest loops(function);
  TileNest nest;
  std::string why;
  std::optional<Product> product = productOf(loops, why);
  if (!product)
    return function.emitError("tiles: the nest is no product of tiles: ") << why;
  nest.product = *product;
  SmallVector<LoopOp> open;
  readLoops(nest, loops.mainChain(), open);
  if (failed(checkLoops(nest, open)))
    return failure();
  nest.lists = nest.items.getBalanceAttr();
  if (failed(readLoads(nest, function)) || failed(readLayout(nest, function)) || failed(checkStart(nest)))
    return failure();
  return nest;
}

/// Erases a number that nothing needs, behind those that take it; false where one is needed.
static bool eraseUnneeded(Operation *op) {
  if (!isPure(op) || op->getNumRegions() != 0 || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  while (!op->use_empty())
    if (!eraseUnneeded(*op->user_begin()))
      return false;
  op->erase();
  return true;
}

LogicalResult lacis::eraseReplaced(Operation *nest, Operation *statement) {
  auto outside = [&](Value value) {
    auto found = llvm::find_if(value.getUsers(), [&](Operation *user) { return !nest->isAncestor(user); });
    return found == value.user_end() ? nullptr : *found;
  };
  auto isTaken = [&](Value value) {
    while (Operation *user = outside(value))
      if (!eraseUnneeded(user))
        return true;
    return false;
  };
  WalkResult found = nest->walk([&](Block *block) {
    bool isAny = llvm::any_of(block->getArguments(), isTaken);
    for (Operation &op : *block)
      isAny |= llvm::any_of(op.getResults(), isTaken);
    return isAny ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (found.wasInterrupted())
    return refuseStatement(statement);
  nest->erase();
  return success();
}

LogicalResult lacis::eraseNest(TileNest &nest, Operation *statement) {
  auto function = nest.top->getParentOfType<func::FuncOp>();
  if (failed(eraseReplaced(nest.top, statement)))
    return failure();
  for (unsigned argument = 0; argument < function.getNumArguments(); ++argument)
    function.removeArgAttr(argument, "lacis.regroup");
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  return success();
}
