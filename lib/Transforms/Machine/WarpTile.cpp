// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reads the loops of a warp's tile: how many there are, what guards them, and what they multiply.
#include "WarpTile.h"

#include "../Tiles/TileGuards.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

bool lacis::writes(Operation *op) {
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(op);
  auto isRead = [](const MemoryEffects::EffectInstance &effect) { return isa<MemoryEffects::Read>(effect.getEffect()); };
  return !effects || !llvm::all_of(*effects, isRead);
}

/// The depth's coordinate, or that plus what has nothing to do with it.
bool WarpTile::isConsecutive(Value value) {
  if (value == depth.getCoordinate())
    return true;
  auto sum = value.getDefiningOp<arith::AddIOp>();
  return sum && ((isConsecutive(sum.getLhs()) && !varies(sum.getRhs())) ||
                 (isConsecutive(sum.getRhs()) && !varies(sum.getLhs())));
}

bool WarpTile::liesAlong(Value factor) {
  auto isFixed = [&](Value value) { return !value || !variesAlong(value, depth); };
  if (auto value = factor.getDefiningOp<ValueOp>()) {
    auto place = value.getPosition().getDefiningOp<LocateOp>();
    return place && place.getDigits().size() == 1 && isConsecutive(place.getDigits()[0]) && isFixed(place.getParent()) &&
           isFixed(value.getBatch());
  }
  auto read = factor.getDefiningOp<ReadOp>();
  return read && isConsecutive(read.getIndices().back()) && llvm::all_of(read.getIndices().drop_back(), isFixed);
}

/// The three loops of the tile, and nothing that runs beside them.
static LogicalResult readLoops(WarpTile &tile) {
  SmallVector<LoopOp> chain = perfectChain(tile.rows);
  if (chain.size() != 2 || chain[1].getMma() != TileSide::Columns)
    return tile.refuse("are rows around columns, with nothing between them");
  tile.columns = chain[1];
  tile.columns->walk([&](LoopOp loop) {
    if (loop != tile.columns && loop.getMma())
      tile.depth = loop;
  });
  if (!tile.depth || *tile.rows.getTrip() % kRows != 0 || *tile.columns.getTrip() % kColumns != 0 ||
      !tile.depth.getTrip() || (tile.depth.getTrip() != kDepth && tile.depth.getTrip() != 2 * kDepth))
    return tile.refuse("run 16 times or a multiple along rows, 8 or a multiple along columns, and 16 or 32 along the depth");
  bool hasOther = false;
  tile.columns->walk([&](LoopOpInterface loop) { hasOther |= !loop->isAncestor(tile.depth); });
  if (hasOther)
    return tile.refuse("have no loop beside those around the depth");
  for (LoopOp loop : {tile.rows, tile.columns, tile.depth})
    tile.variance.add(loop);
  return success();
}

/// The sum, and what guards it.
static LogicalResult readGuards(WarpTile &tile) {
  Block *body = tile.columns.getBlock();
  while (!tile.sum) {
    Operation *inner = body->findAncestorOpInBlock(*tile.depth);
    auto guard = dyn_cast<scf::IfOp>(inner);
    bool isGuard = guard && guard.getNumResults() == 0;
    tile.around.push_back({body, isGuard ? guard.getCondition() : Value()});
    if (isGuard && tile.variesAlong(guard.getCondition(), tile.rows) && tile.variesAlong(guard.getCondition(), tile.columns))
      return tile.refuse("have guards along rows or along columns, not along both");
    if (!isGuard)
      tile.sum = inner;
    else
      body = guard.thenBlock();
  }
  bool writesElsewhere = false;
  tile.columns->walk([&](Operation *op) {
    Operation *own = body->findAncestorOpInBlock(*op);
    writesElsewhere |= op->getNumRegions() == 0 && writes(op) && (!own || !tile.sum->isBeforeInBlock(own));
  });
  return writesElsewhere ? tile.refuse("write only behind their sum") : success();
}

/// What a loop begins with, or what a guard leaves as it was.
static Value startOf(Operation *op) {
  if (auto guard = dyn_cast<scf::IfOp>(op))
    return guard.elseBlock()->getTerminator()->getOperand(0);
  return op->getOperands().back();
}

/// Each loop and each guard around the depth hands the sum on as it is: a warp's accumulators go through all of them.
static bool isHandedOn(WarpTile &tile) {
  for (Operation *op = tile.depth; op != tile.sum; op = op->getParentOp()) {
    Operation *around = op->getParentOp();
    Value carried = isa<scf::IfOp>(around) ? startOf(around) : Value(op->getBlock()->getArguments().back());
    if (op->getNumResults() != 1 || op->getBlock()->getTerminator()->getOperand(0) != op->getResult(0) ||
        startOf(op) != carried)
      return false;
  }
  return tile.sum->getNumResults() == 1;
}

/// What an instruction multiplies: elements of a half type, however they are computed. Padding of stored blocks is 0.
static LogicalResult readFactors(WarpTile &tile) {
  arith::MulFOp product = factorsOf(tile.depth);
  auto isPadding = [&](Value condition) { return condition.getDefiningOp<EntryOp>() && isZeroWithout(condition, product); };
  if (!product || !llvm::all_of(combinationOf(tile.depth)->conditions, isPadding) || !isHandedOn(tile))
    return tile.refuse("sum products of two factors, and nothing else");
  tile.start = startOf(tile.sum);
  tile.left = behindCast(product.getLhs());
  tile.right = behindCast(product.getRhs());
  if (tile.variesAlong(tile.left, tile.columns))
    std::swap(tile.left, tile.right);
  Type type = tile.left.getType();
  if (tile.variesAlong(tile.left, tile.columns) || tile.variesAlong(tile.right, tile.rows) ||
      (!type.isF16() && !type.isBF16()) || tile.right.getType() != type)
    return tile.refuse("have one factor along the rows and one along the columns, both of one half type");
  return success();
}

FailureOr<WarpTile> lacis::readWarpTile(LoopOp rows) {
  WarpTile tile;
  tile.rows = rows;
  if (failed(readLoops(tile)) || failed(readGuards(tile)) || failed(readFactors(tile)))
    return failure();
  return tile;
}
