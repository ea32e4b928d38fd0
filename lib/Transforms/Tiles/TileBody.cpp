// SPDX-License-Identifier: Apache-2.0
/// \file
/// What stands in the loops of a tile.
#include "TileBody.h"

#include "TileGuards.h"
#include "TileVariance.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/Reduction.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

bool TileBody::isOfTile(Value value) {
  return followsFrom(value, [&](Value from) {
    auto isOf = [&](LoopOp loop) { return loop.getCoordinate() == from; };
    return (sum && from.getDefiningOp() == sum) || (parts && isOf(parts)) || llvm::any_of(tile, isOf);
  });
}

/// Is it the same for neighbours along both loops of a tile?
bool TileBody::isOfParts(Value value) {
  return llvm::all_of(tile, [&](LoopOp loop) { return neighboursOf(value, loop.getCoordinate()) != 1; });
}

//===- Conditions ---------------------------------------------------------===//

/// One on each place of a tile says where an axis ends: boxes have 0 behind it, and stores leave that out.
void TileBody::addCondition(Value condition) {
  if (!isOfTile(condition))
    conditions.push_back(condition);
  else
    (isOfParts(condition) ? partConditions : ends).push_back(condition);
}

static bool isGuard(scf::IfOp guard) { return guard.getNumResults() == 0 && !guard.elseBlock(); }

LogicalResult TileBody::openGuards() {
  for (Operation *op = inner(); op != outer; op = op->getParentOp()) {
    auto guard = dyn_cast<scf::IfOp>(op);
    bool isTile = llvm::is_contained(tile, dyn_cast<LoopOp>(op));
    if (guard ? !isGuard(guard) : !isTile)
      return op->emitError("tiles: this stands between the loops of a tile, which are one product");
    if (guard)
      addCondition(guard.getCondition());
  }
  openInner();
  return success();
}

/// Guards around the sum are opened; one behind it is of the store.
void TileBody::openInner() {
  block = inner().getBlock();
  while (auto guard = dyn_cast_or_null<scf::IfOp>(block->getTerminator()->getPrevNode())) {
    if (!isGuard(guard) || !block->getOps<LoopOp>().empty() || !block->getOps<LevelLoopOp>().empty())
      break;
    addCondition(guard.getCondition());
    Block *inside = guard.thenBlock();
    inside->getTerminator()->erase();
    block->getOperations().splice(guard->getIterator(), inside->getOperations());
    guard.erase();
  }
}

//===- Stores -------------------------------------------------------------===//

static LogicalResult refuse(Operation *op) {
  return op->emitError("tiles: a tile has one sum, and stores what follows from it");
}

static bool isNumber(Operation *op) { return isa<ReadOp>(op) || isMemoryEffectFree(op); }

/// The one store of a branch.
static FailureOr<Operation *> storeIn(Block *branch) {
  Operation *found = nullptr;
  for (Operation &op : branch->without_terminator()) {
    bool isStore = isa<WriteOp, SetOp, scf::IfOp>(op);
    if ((isStore && found) || (!isStore && !isNumber(&op)))
      return refuse(&op);
    found = isStore ? &op : found;
  }
  if (!found)
    return refuse(branch->getParentOp());
  return found;
}

/// A store, or one that guards stand around.
TileBody::Store TileBody::storeOf(Operation *op) {
  Store found{op, {}};
  while (auto guard = dyn_cast<scf::IfOp>(found.op)) {
    FailureOr<Operation *> inside = isGuard(guard) ? storeIn(guard.thenBlock()) : FailureOr<Operation *>(refuse(guard));
    if (failed(inside))
      return {};
    bool isEnd = isOfTile(guard.getCondition()) && !isOfParts(guard.getCondition());
    (isEnd ? ends : found.conditions).push_back(guard.getCondition());
    found.op = *inside;
  }
  return found;
}

/// A store, or, where a condition holds for all of the tile, one of two.
LogicalResult TileBody::findStore(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || isGuard(branch)) {
    store = storeOf(op);
    return success(store.op);
  }
  FailureOr<Operation *> one = storeIn(branch.thenBlock()), other = storeIn(branch.elseBlock());
  if (failed(one) || failed(other) || branch.getNumResults() != 0 || isOfTile(branch.getCondition()))
    return refuse(branch);
  choice = branch;
  store = storeOf(*one), otherwise = storeOf(*other);
  return success(store.op && otherwise.op);
}

//===- The sum ------------------------------------------------------------===//

LogicalResult TileBody::findSum() {
  for (Operation &op : block->without_terminator()) {
    auto loop = dyn_cast<LoopOpInterface>(op);
    bool stores = isa<WriteOp, SetOp, scf::IfOp>(op);
    if ((loop && sum) || (stores && store.op) || (!loop && !stores && !isNumber(&op)))
      return refuse(&op);
    sum = loop ? &op : sum;
    if (stores && failed(findStore(&op)))
      return failure();
  }
  if (!sum || !store.op || sum->getNumResults() != 1)
    return refuse(outer);
  return findRounds();
}

LogicalResult TileBody::findRounds() {
  Operation *loop = sum;
  auto isInTile = [](Operation *op) { return isa<LoopOp>(op) && cast<LoopOp>(op).getTensorize(); };
  while (!isInTile(loop)) {
    rounds.push_back(loop);
    auto inside = loop->getRegion(0).front().getOps<LoopOp>();
    if (inside.empty() && !factorsOf(loop))
      return checkAdded();
    if (!llvm::hasSingleElement(inside))
      return loop->emitError("tiles: no loop of the sum is tensorized");
    loop = *inside.begin();
  }
  if (rounds.empty())
    return sum->emitError("tiles: all of the sum is one tile; split its loop");
  depth = cast<LoopOp>(loop);
  for (Operation &op : *depth.getBlock())
    if (auto inside = dyn_cast<LoopOpInterface>(op))
      return op.emitError("tiles: loop '") << inside.getName() << "' stands inside of the one over the depth of a tile, which "
                                              "is the innermost of the sum";
  return checkAdded();
}

/// What is added besides, or not always, would be lost.
LogicalResult TileBody::checkAdded() {
  std::optional<Combination> added = combinationOf(sum);
  if (depth ? !factorsOf(sum) : !added)
    return sum->emitError("tiles: a round of a tile's sum adds one product or number, and no other before it");
  for (Value condition : added->conditions)
    if (!isZeroWithout(condition, added->added))
      return emitError(condition.getLoc(), "tiles: a tile adds the products of all its rounds; this condition leaves some out "
                                           "that are not behind the end of an axis");
  return success();
}

/// A condition that differs within the tile would be lost, too.
LogicalResult TileBody::checkEnds() {
  auto leavesOut = [&](Value condition, Operation *op) {
    auto write = dyn_cast_if_present<WriteOp>(op);
    return write ? isOutsideWithout(condition, write) : !op || isZeroWithout(condition, combinationOf(sum)->added);
  };
  for (Value condition : ends)
    if (!leavesOut(condition, store.op) || !leavesOut(condition, otherwise.op))
      return emitError(condition.getLoc(), "tiles: all of a tile is stored; this condition leaves places out that are not behind "
                                           "the end of an axis");
  return success();
}

FailureOr<TileBody> TileBody::read(Operation *nest) {
  SmallVector<LoopOp> rows, columns;
  nest->walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    if (loop.getTensorize() == TileSide::Rows)
      rows.push_back(loop);
    if (loop.getTensorize() == TileSide::Columns)
      columns.push_back(loop);
  });
  if (rows.size() != 1 || columns.size() != 1)
    return nest->emitError("tiles: a tile has one loop over its rows and one over its columns");
  TileBody found;
  found.tile = {rows[0], columns[0]};
  found.outer = rows[0]->isAncestor(columns[0]) ? rows[0] : columns[0];
  if (auto around = dyn_cast<LoopOp>(found.outer->getParentOp()); around && around.getJam() && around.getTrip())
    found.parts = found.outer = around;
  bool isTile = succeeded(found.openGuards()) && succeeded(found.findSum()) && succeeded(found.checkEnds());
  return isTile ? FailureOr<TileBody>(found) : FailureOr<TileBody>();
}
