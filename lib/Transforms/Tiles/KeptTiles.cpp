// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums in a workspace of the whole kernel, which lie tile by tile as accumulators are loaded and stored.
#include "KeptTiles.h"

#include "lacis/Dialect/Lacis/IR/Follows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

bool lacis::isKept(Value tensor) {
  auto workspace = tensor.getDefiningOp<WorkspaceOp>();
  return workspace && !workspace.getPlace() && formatOf(tensor).getLevels().size() == 4; // as `accumulatorTiles` makes it
}

/// How many tiles of `size` come before `base`, which is a multiple of it.
static Value tilesBefore(OpBuilder &b, Location loc, Value base, int64_t size) {
  APInt factor;
  auto product = base.getDefiningOp<arith::MulIOp>();
  if (product && matchPattern(product.getRhs(), m_ConstantInt(&factor)) && factor == size)
    return product.getLhs();
  return arith::DivUIOp::create(b, loc, base, arith::ConstantIndexOp::create(b, loc, size));
}

/// The number of the tile: the columns of an accumulator are the tensor's first axis, the rows its second. A row that a
/// panel lacks has some tile.
static FailureOr<Value> placeOf(OpBuilder &b, Operation *op, Value tensor, ValueRange indices, TileVariance &variance,
                                RoleScalars &scalars) {
  Location loc = op->getLoc();
  ArrayRef<LevelAttr> levels = formatOf(tensor).getLevels();
  std::optional<TileVariance::Place> across = variance.placeOf(indices[0]), down = variance.placeOf(indices[1]);
  if (!across || !down || !across->coordinate || !down->coordinate)
    return refuseStatement(op);
  int64_t columns = levels[0].getDigits()[0].div, rows = levels[1].getDigits()[0].div;
  Value height = arith::ConstantIndexOp::create(b, loc, rows);
  Value size = scalars.get(b, tensor.getDefiningOp<WorkspaceOp>().getSizes()[1]);
  Value count = arith::CeilDivUIOp::create(b, loc, size, height);
  Value own = tilesBefore(b, loc, scalars.baseOf(b, *down, loc), rows);
  if (down->base && followsFrom(down->base, [](Value from) { return bool(from.getDefiningOp<OriginOp>()); })) {
    Value last = arith::SubIOp::create(b, loc, count, arith::ConstantIndexOp::create(b, loc, 1));
    own = arith::MinUIOp::create(b, loc, own, last);
  }
  Value first = arith::MulIOp::create(b, loc, tilesBefore(b, loc, scalars.baseOf(b, *across, loc), columns), count);
  return arith::AddIOp::create(b, loc, first, own).getResult();
}

FailureOr<Value> lacis::loadKept(OpBuilder &b, ReadOp read, Value onto, TileVariance &variance, RoleScalars &scalars) {
  FailureOr<Value> place = placeOf(b, read, read.getTensor(), read.getIndices(), variance, scalars);
  if (failed(place))
    return failure();
  ArrayRef<LevelAttr> levels = formatOf(read.getTensor()).getLevels();
  auto type = AccType::get(b.getContext(), {levels[1].getDigits()[0].div, levels[0].getDigits()[0].div}, read.getType());
  return LoadAccOp::create(b, read.getLoc(), type, read.getTensor(), *place, onto).getAcc();
}

LogicalResult lacis::storeKept(OpBuilder &b, WriteOp write, Value acc, TileVariance &variance, RoleScalars &scalars) {
  FailureOr<Value> place = placeOf(b, write, write.getTensor(), write.getIndices(), variance, scalars);
  if (succeeded(place))
    StoreAccOp::create(b, write.getLoc(), acc, write.getTensor(), *place);
  return place;
}
