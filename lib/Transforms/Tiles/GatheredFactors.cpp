// SPDX-License-Identifier: Apache-2.0
/// \file
/// Factors of products whose rows or columns are gathered from a window of their operand.
#include "GatheredFactors.h"

#include "lacis/Dialect/Lacis/IR/Follows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace lacis;

/// The coordinate at a position of a bitmap that is counted from the first under its parent, as the rows of a tile are; or null.
static CoordinateOp coordinateIn(Value offset, Value rows) {
  CoordinateOp found;
  (void)followsFrom(offset, [&](Value from) {
    auto own = from.getDefiningOp<CoordinateOp>();
    bool isCounted = own && own.getLo().getDefiningOp<BoundsOp>() && followsFrom(own.getPosition(), rows);
    if (isCounted)
      found = own;
    return isCounted;
  });
  return found;
}

/// The offsets of the rows of one part of the columns: bit by bit of what is stored. Behind the last it is some row.
static void findRows(OpBuilder &b, StagedBox &box, CoordinateOp counted, int64_t count, RoleScalars &scalars) {
  Location loc = counted.getLoc();
  auto word = [&](int64_t value) { return arith::ConstantIntOp::create(b, loc, value, 32).getResult(); };
  Value parent = scalars.get(b, counted.getLo().getDefiningOp<BoundsOp>().getParent());
  Value bits = PresenceOp::create(b, loc, b.getI32Type(), counted.getTensor(), counted.getLevel(), parent);
  for (int64_t number = 0; number < count; ++number) {
    RoleScalars own = scalars;
    Value bit = math::CountTrailingZerosOp::create(b, loc, bits);
    own.map(counted.getDigits()[0], arith::IndexCastOp::create(b, loc, b.getIndexType(), bit));
    box.offsets.push_back(own.get(b, box.window->offset));
    bits = arith::AndIOp::create(b, loc, bits, arith::SubIOp::create(b, loc, bits, word(1)));
  }
}

/// The same, of what is no bitmap.
static void findEach(OpBuilder &b, StagedBox &box, int64_t count, RoleScalars &scalars) {
  for (int64_t number = 0; number < count; ++number) {
    RoleScalars own = scalars;
    Value row = arith::ConstantIndexOp::create(b, box.read.getLoc(), number * box.window->width);
    own.map(box.window->coordinate, row);
    box.offsets.push_back(own.get(b, box.window->offset));
  }
}

void lacis::findOffsets(OpBuilder &b, StagedBox &box, TileVariance &variance, RoleScalars &scalars) {
  Value offset = box.window->offset, coordinate = box.window->coordinate, columns = coordinate;
  for (Value along : variance.of(offset))
    columns = along == coordinate ? columns : along;
  int64_t width = neighboursOf(offset, columns), rows = variance.sizeOf(coordinate) / box.window->width;
  CoordinateOp counted = columns == coordinate ? CoordinateOp() : coordinateIn(offset, coordinate);
  box.offsets.clear();
  for (int64_t first = 0; first < variance.sizeOf(columns); first += width) {
    RoleScalars own = scalars;
    own.map(columns, arith::ConstantIndexOp::create(b, offset.getLoc(), first));
    if (columns == coordinate)
      box.offsets.push_back(own.get(b, offset));
    else if (counted)
      findRows(b, box, counted, rows, own);
    else
      findEach(b, box, rows, own);
  }
}
