// SPDX-License-Identifier: Apache-2.0
/// \file
/// A loop over coordinates that sinks below the walk in it, whose sums become a tile.
///
/// The loop is there three times then: it begins the elements of the tile, adds to them in each round of the walk, and
/// does behind the walk what followed the sum. What stood before the walk is computed where it is asked for.
#include "SunkLoop.h"

#include "lacis/Dialect/Lacis/IR/Workspace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

/// Elements of a tile of one thread: more leave the registers, and most of a stack.
static constexpr int64_t kMostInTile = 256;

/// What stands before the walk and what it runs over depends on, in the order of the nest.
static SetVector<Operation *> madeForWalk(LoopOp loop, LevelLoopOp walk) {
  SmallVector<Value> asked{walk.getParent(), walk.getTensor()}; // what its sums begin with is for the tile
  SetVector<Operation *> found;
  while (!asked.empty()) {
    Operation *made = asked.pop_back_val().getDefiningOp();
    if (!made || !loop->isProperAncestor(made) || !found.insert(made))
      continue;
    llvm::append_range(asked, made->getOperands());
  }
  SetVector<Operation *> ordered;
  loop->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (found.contains(op))
      ordered.insert(op);
  });
  return ordered;
}

/// Nothing but guards lies between the two, and before the walk nothing is written.
static bool isAroundAlone(LoopOp loop, LevelLoopOp walk) {
  Operation *inside = walk;
  while (inside->getParentOp() != loop) {
    auto guard = dyn_cast<scf::IfOp>(inside->getParentOp());
    if (!guard || guard.getNumResults() != 0 || !guard.getElseRegion().empty())
      return false;
    for (Operation &op : llvm::make_range(guard->getBlock()->begin(), guard->getIterator()))
      if (!isPure(&op) && !isa<ReadOp>(op))
        return false;
    inside = guard;
  }
  auto before = llvm::make_range(walk->getBlock()->begin(), walk->getIterator());
  return llvm::all_of(before, [](Operation &op) { return isPure(&op) || isa<ReadOp>(op); });
}

std::string lacis::objectionToSinking(LoopOp loop, LevelLoopOp walk) {
  std::string around = "loop '" + loop.getName().str() + "'", inside = "loop '" + walk.getName().str() + "'";
  if (walk.getNumResults() == 0 || loop.getMeets() || !isAroundAlone(loop, walk))
    return around + " has more in it than the sum of " + inside + " and what follows that";
  for (Operation *op : madeForWalk(loop, walk))
    for (Value operand : op->getOperands())
      if (operand == loop.getCoordinate() || !isPure(op))
        return "what " + inside + " runs over depends on " + around;
  if (walk.getParent() == loop.getCoordinate())
    return "what " + inside + " runs over depends on " + around;
  std::optional<int64_t> trip = pinTrip(loop);
  if (!trip)
    return around + " has no constant trip count; split it first, the sums of its inner loop are a tile then";
  if (*trip > kMostInTile)
    return std::to_string(*trip) + " sums of " + around + " are more than " + std::to_string(kMostInTile) +
           ", the most of a tile; split it first";
  return "";
}

namespace {
/// The loop once more before `b`, and the walk in it.
struct Copy {
  Copy(OpBuilder &b, LoopOp from, LevelLoopOp inside, PathAttr path) {
    IRMapping mapping;
    loop = cast<LoopOp>(b.clone(*from, mapping));
    walk = cast<LevelLoopOp>(mapping.lookup(inside.getOperation()));
    loop.setPathAttr(path);
    while (walk->getNextNode() != walk->getBlock()->getTerminator())
      walk->getBlock()->getTerminator()->getPrevNode()->erase();
  }

  /// Erases the walk, and what stood before it for nothing but its sake.
  void eraseWalk() {
    Block *block = walk->getBlock();
    walk->erase();
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  LoopOp loop;
  LevelLoopOp walk;
};
} // namespace

static Value readTile(OpBuilder &b, LoopOp loop, WorkspaceOp tile) {
  Type element = cast<RankedTensorType>(tile.getType()).getElementType();
  return ReadOp::create(b, loop.getLoc(), element, tile, loop.getCoordinate(), Value(), IntegerAttr());
}

static void writeTile(OpBuilder &b, LoopOp loop, WorkspaceOp tile, Value value) {
  WriteOp::create(b, loop.getLoc(), value, tile, loop.getCoordinate(), Value(), IntegerAttr());
}

/// for k: tile[k] = what the sums begin with
static void beginTiles(OpBuilder &b, LoopOp loop, LevelLoopOp walk, ArrayRef<WorkspaceOp> tiles) {
  PathAttr path = join(nestOf(b.getContext(), walk.getLoopName()), pathOf(b.getContext(), PathKind::Phase, "tile"));
  Copy copy(b, loop, walk, join(path, loop.getPathAttr()));
  OpBuilder inside(copy.walk);
  for (auto [tile, init] : llvm::zip(tiles, copy.walk.getInits()))
    writeTile(inside, copy.loop, tile, init);
  copy.eraseWalk();
}

/// for j: for k: tile[k] += s
static void addToTiles(OpBuilder &b, LoopOp loop, LevelLoopOp walk, ArrayRef<WorkspaceOp> tiles) {
  auto outer = LevelLoopOp::create(b, walk.getLoc(), walk.getLoopName(), walk.getTensor(), walk.getLevel(),
                                   walk.getParent(), ValueRange());
  OpBuilder body = OpBuilder::atBlockEnd(outer.getBlock());
  YieldOp::create(body, walk.getLoc());
  body.setInsertionPointToStart(outer.getBlock());
  Copy copy(body, loop, walk, loop.getPathAttr());
  Block *source = copy.walk.getBlock();
  OpBuilder inside(copy.walk);
  auto unused = source->getArguments().drop_back(tiles.size());
  for (auto [before, after] : llvm::zip_equal(unused, outer.getBlock()->getArguments()))
    before.replaceAllUsesWith(after);
  for (auto [before, tile] : llvm::zip_equal(copy.walk.getIterArgs(), tiles))
    before.replaceAllUsesWith(readTile(inside, copy.loop, tile));
  SmallVector<Value> sums(source->getTerminator()->getOperands());
  copy.walk->getBlock()->getOperations().splice(copy.walk->getIterator(), source->getOperations(), source->begin(),
                                                std::prev(source->end()));
  for (auto [tile, sum] : llvm::zip_equal(tiles, sums))
    writeTile(inside, copy.loop, tile, sum);
  copy.eraseWalk();
}

void lacis::sinkBelow(LoopOp loop, LevelLoopOp walk) {
  for (Operation *op : madeForWalk(loop, walk))
    op->moveBefore(loop);
  OpBuilder b(loop);
  SmallVector<WorkspaceOp> tiles;
  for (Type element : walk.getResultTypes())
    tiles.push_back(makeTile(b, loop.getLoc(), element, *loop.getTrip())); // an element for each round
  beginTiles(b, loop, walk, tiles);
  addToTiles(b, loop, walk, tiles);
  OpBuilder inside(walk);
  for (auto [sum, tile] : llvm::zip_equal(walk.getResults(), tiles))
    sum.replaceAllUsesWith(readTile(inside, loop, tile));
  loop.setPathAttr(join(nestOf(b.getContext(), walk.getLoopName()), loop.getPathAttr()));
  walk->erase();
}
