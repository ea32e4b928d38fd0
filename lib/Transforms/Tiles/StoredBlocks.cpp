// SPDX-License-Identifier: Apache-2.0
/// \file
/// Statements that store blocks of an output, of which a tile has several, one below the other.
#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

/// The last three numbers are the block, and the row and the column in it.
static Value blockOf(const Access &to) { return to.indices[to.indices.size() - 3]; }

bool TileStatements::isInBlocks(const Access &to) {
  return formatOf(to.tensor) && to.indices.size() >= 3 && neighboursOf(blockOf(to), row) > 1;
}

/// The slot of a block where the guards around the store hold; else negative.
static Value slotOf(OpBuilder &b, const Access &to, TileVariance &variance, RoleScalars &scalars) {
  Location loc = to.getLoc();
  Type word = b.getI32Type();
  Value condition = scalars.all(b, guardsAround(to.op));
  auto made = scf::IfOp::create(b, loc, word, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = made.getThenBodyBuilder(), otherwise = made.getElseBodyBuilder();
  RoleScalars inside = scalars;
  Value slot = inside.get(then, blockOf(to));
  scf::YieldOp::create(then, loc, arith::IndexCastOp::create(then, loc, word, slot).getResult());
  scf::YieldOp::create(otherwise, loc, arith::ConstantIntOp::create(otherwise, loc, -1, 32).getResult());
  return made.getResult(0);
}

LogicalResult TileStatements::storeBlocks(OpBuilder &b, const Access &to, Value value) {
  Location loc = to.getLoc();
  if (auto rounded = value.getDefiningOp<arith::TruncFOp>())
    value = rounded.getIn(); // the store rounds
  std::optional<TileVariance::Place> down = variance.placeInParts(to.indices[to.indices.size() - 2]);
  std::optional<TileVariance::Place> across = variance.placeOf(to.indices.back());
  int64_t height = neighboursOf(blockOf(to), row);
  bool areWhole = down && down->coordinate == row && down->width == height && !down->base && across && !across->base;
  if (!areWhole || !across->coordinate)
    return refuseStatement(to.op);
  FailureOr<Value> acc = tile(b, value, across->coordinate, loc);
  if (failed(acc))
    return failure();
  SmallVector<Value> slots;
  for (int64_t first = 0; first < variance.sizeOf(row); first += height) {
    RoleScalars own = scalars;
    own.map(row, arith::ConstantIndexOp::create(b, loc, first));
    slots.push_back(slotOf(b, to, variance, own));
  }
  Value copy = to.indices.size() > 3 ? scalars.get(b, to.indices[0]) : Value();
  StoreBlocksOp::create(b, loc, *acc, to.tensor, slots, copy, ArrayAttr(), TypeAttr());
  return success();
}
