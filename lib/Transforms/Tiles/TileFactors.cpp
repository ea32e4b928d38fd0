// SPDX-License-Identifier: Apache-2.0
/// \file
/// Factors of products: boxes of dense operands as tiles, and the product of two.
#include "TileFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

TileType lacis::tileOfBox(Type element, int64_t rows, int64_t columns) {
  constexpr int64_t lineBits = 1024;
  int64_t line = std::min<int64_t>(columns, lineBits / element.getIntOrFloatBitWidth());
  SmallVector<int64_t> shape{columns / line, rows, line};
  return TileType::get(element.getContext(), ArrayRef(shape).drop_front(shape[0] == 1 ? 1 : 0), element);
}

SmallVector<Value> lacis::basesOf(OpBuilder &b, const Access &read, TileVariance &variance, RoleScalars &scalars) {
  return llvm::map_to_vector(read.indices, [&](Value index) {
    return scalars.baseOf(b, {variance.baseOf(index), Value()}, read.getLoc());
  });
}

void lacis::loadTile(OpBuilder &b, Location loc, Value tensor, ValueRange from, Value tile, Value place, TilePart part) {
  bool isList = cast<TileType>(tile.getType()).isList();
  setPart(LoadTileOp::create(b, loc, tensor, from, tile, isList ? place : Value(), ArrayAttr()), part);
}

/// Axes of a batch stay apart, as far as the copy engine has axes: the tensor may be strided.
static SmallVector<Value> placeOfLoad(OpBuilder &b, Value tensor, ArrayRef<Value> bases) {
  bool isApart = bases.size() == size_t(cast<RankedTensorType>(tensor.getType()).getRank()) && bases.size() <= kMapAxes;
  return isApart ? SmallVector<Value>(bases) : placeOfBox(b, tensor, bases);
}

void lacis::loadBox(OpBuilder &b, const Access &read, ArrayRef<Value> bases, Value tile, Value place, TilePart part) {
  loadTile(b, read.getLoc(), read.tensor, placeOfLoad(b, read.tensor, bases), tile, place, part);
}

Value lacis::loadVector(OpBuilder &b, ReadOp read, Value row, TileVariance &variance, RoleScalars &scalars) {
  Value along = variance.placeOf(read.getIndices().back())->coordinate;
  Value first = numberOf(b, read.getTensor(), basesOf(b, read, variance, scalars));
  auto typeOf = [&](int64_t columns) {
    return AccType::get(b.getContext(), {variance.sizeOf(row), columns}, b.getF32Type());
  };
  Location loc = read.getLoc();
  if (along == row)
    return LoadRowsOp::create(b, loc, typeOf(1), read.getTensor(), first, Value(), TypeAttr());
  return LoadColumnsOp::create(b, loc, typeOf(variance.sizeOf(along)), read.getTensor(), first, Value(), TypeAttr());
}

Value lacis::multiplyTiles(OpBuilder &b, Location loc, AccType type, TileFactor left, TileFactor right, Value onto,
                           bool isTf32) {
  auto flag = [&](bool value) { return value ? b.getUnitAttr() : UnitAttr(); };
  for (TileFactor *factor : {&left, &right}) { // transposed tiles of a list stand side by side
    auto tile = dyn_cast<TileType>(factor->tile.getType());
    if (tile && tile.isList() && factor->isTransposed && !factor->place)
      factor->place = arith::ConstantIndexOp::create(b, loc, 0);
  }
  return MmaOp::create(b, loc, type, left.tile, left.place, flag(left.isTransposed), left.present, right.tile,
                       right.place, flag(right.isTransposed), onto, flag(isTf32));
}
