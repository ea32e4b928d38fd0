// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the marks of a sampled product that is to become tiles.
#include "SampledTiles.h"

using namespace mlir;
using namespace lacis;

static StringRef letters(LoopOp loop) { return loop.getName().rtrim("0123456789"); }

static LogicalResult readLoops(SampledNest &nest, Nest &loops) {
  LoopOp top = nest.product.entries;
  SmallVector<LoopOp> chain = loops.mainChain();
  LoopOp open;
  top->walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    bool isEntries = loop != top && llvm::is_contained(chain, loop) && letters(loop) == letters(top);
    std::optional<TileSide> side = loop.getTensorize();
    bool bound = loop.getBind() == ParallelUnit::Warpgroup && loop.getTrip().value_or(0) > 0;
    if (bound)
      nest.consumers = loop;
    if (isEntries)
      nest.blocks *= loop.getTrip().value_or(1);
    else if (bound || side)
      (!side || side == TileSide::Rows ? nest.rowLoops
       : side == TileSide::Columns     ? nest.columnLoops
                                       : nest.depthLoops)
          .push_back(loop);
    bool known = loop == top || loop == nest.product.sum || llvm::is_contained(nest.product.batchLoops, loop) || side ||
                 bound || (isEntries && loop.getJam());
    if (!known && !open)
      open = loop;
  });
  nest.depth = roundsOf(nest.depthLoops);
  if (!nest.consumers)
    return top.emitError("tiles: no loop is bound to 'warpgroup'; bind the one whose rounds multiply side by side");
  if (!top.getBalance())
    return top.emitError("tiles: nothing says who works on which blocks; balance loop '") << top.getName() << "'";
  if (open)
    return open.emitError("tiles: loop '") << open.getName()
                                           << "' is neither tensorized, nor bound to 'warpgroup', nor jammed";
  return success();
}

/// Steps are of blocks of one column, which are gathered from anywhere in the panel.
static LogicalResult readGathered(SampledNest &nest, int64_t capacity, int64_t within) {
  constexpr int64_t tile = 64;
  TileLayout &layout = nest.layout;
  LoopOp top = nest.product.entries;
  layout.capacity = capacity;
  nest.within = within;
  if (capacity * layout.rows != tile || layout.width != 1 || layout.panel % tile != 0 || within % tile != 0)
    return top.emitError("tiles: steps are gathered that have 64 rows of blocks of one column; the rows of a panel and the "
                         "columns of a share are a multiple of 64");
  nest.share = nest.blocks / capacity;
  if (nest.consumersHaveRows() || nest.blocks % capacity != 0 || nest.share % nest.numConsumers() != 0)
    return top.emitError("tiles: the blocks of a share are so many steps for each consumer; ")
           << capacity << " blocks are a step";
  return success();
}

static LogicalResult readLayout(SampledNest &nest, func::FuncOp function) {
  const Product &product = nest.product;
  LoopOp top = product.entries;
  auto mark = function.getArgAttrOfType<LayoutAttr>(product.stored.getArgNumber(), "lacis.regroup");
  if (!mark)
    return top.emitError("tiles: the pattern is walked in its own layout; regroup it");
  TileLayout &layout = nest.layout;
  layout.format = mark.getFormat();
  std::optional<int64_t> capacity = mark.getCapacity();
  std::optional<int64_t> within = top.getBalanceAttr().getWithin();
  auto axes = function.getArgAttrOfType<ArrayAttr>(product.stored.getArgNumber(), "lacis.axes").getValue().take_back(2);
  unsigned m = cast<StringAttr>(axes[0]).getValue() == product.rows ? 0 : 1;
  bool isRead = succeeded(layout.read(m, 1 - m));
  if (!isRead || capacity.has_value() != within.has_value() || !layout.isLinked)
    return top.emitError("tiles: ") << layout.format << " has not the levels panel, step, bitmap of blocks, link, and block";
  auto [height, width, transposed, isMatrix] = product.block();
  if (layout.transposed || layout.rows != height || layout.columns != width ||
      roundsOf(nest.rowLoops) != height || roundsOf(nest.columnLoops) != width)
    return top.emitError("tiles: the tiles of the layout are the stored blocks, of ")
           << height << " x " << width << ", and so are the loops that are tensorized";
  if (capacity)
    return readGathered(nest, *capacity, *within);
  nest.rowGroups = layout.panel / 64;
  bool halves = nest.rowGroups == nest.numConsumers() || (nest.rowGroups == 1 && !nest.consumersHaveRows());
  if (layout.panel % 64 != 0 || !halves)
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
  if (height > 64 && !layout.isFull)
    return top.emitError("tiles: stored blocks of more than 64 rows are a step of the layout each");
  return success();
}

FailureOr<SampledNest> lacis::readSampledNest(func::FuncOp function) {
  Nest loops(function);
  SampledNest nest;
  std::string why;
  std::optional<Product> product = productOf(loops, why);
  if (!product)
    return function.emitError("tiles: the nest is no product of tiles: ") << why;
  nest.product = *product;
  if (failed(readLoops(nest, loops)))
    return failure();
  std::optional<uint64_t> stages = cast<LoopOpInterface>(nest.product.sum).getPipeline();
  if (!stages)
    return nest.product.sum->emitError("tiles: loop '") << nest.product.sumName() << "' loads nothing ahead; "
                                                       << "pipeline it";
  nest.stages = *stages;
  for (BlockArgument operand : {nest.product.left, nest.product.right})
    if (!function.getArgAttr(operand.getArgNumber(), "lacis.staged"))
      return nest.product.entries.emitError("tiles: operand ")
             << function.getArgAttr(operand.getArgNumber(), "lacis.name") << " is not staged in 'shared'";
  if (nest.product.batchLoops.size() != (nest.product.hasCopies ? 1 : 0))
    return nest.product.sum->emitError("tiles: letters of a batch have one loop, of copies in a share, else with loop '")
           << nest.product.sumName() << "'; fuse them";
  nest.parts = nest.product.entries.getBalanceAttr().getParts().value_or(nest.parts);
  FailureOr<bool> isTf32 = readTf32(function, nest.product.left);
  if (failed(isTf32) || failed(readLayout(nest, function)))
    return failure();
  nest.isTf32 = *isTf32;
  if (nest.parts && nest.product.hasCopies)
    return nest.product.entries.emitError("tiles: sums of values in copies that share a pattern are not cut into 'parts'");
  if (nest.parts && nest.isTf32)
    return nest.product.entries.emitError("tiles: sums of shares in tf32 are not cut into 'parts'");
  return nest;
}
