// SPDX-License-Identifier: Apache-2.0
/// \file
/// Boxes of dense operands, as the tiles that products take.
#include "TileBoxes.h"

using namespace mlir;
using namespace lacis;

TileType lacis::tileOfBox(Type element, int64_t rows, int64_t columns) {
  constexpr int64_t lineBits = 1024;
  int64_t line = std::min<int64_t>(columns, lineBits / element.getIntOrFloatBitWidth());
  SmallVector<int64_t> shape{columns / line, rows, line};
  return TileType::get(element.getContext(), ArrayRef(shape).drop_front(shape[0] == 1 ? 1 : 0), element);
}

SmallVector<Value> lacis::basesOf(OpBuilder &b, ReadOp read, TileVariance &variance, RoleScalars &scalars) {
  return llvm::map_to_vector(foldDigits(read.getIndices()), [&](Value index) {
    return scalars.baseOf(b, *variance.placeOf(index), read.getLoc());
  });
}

void lacis::loadBox(OpBuilder &b, ReadOp read, ArrayRef<Value> bases, Value tile) {
  Value tensor = read.getTensor();
  LoadTileOp::create(b, read.getLoc(), tensor, placeOfBox(b, tensor, bases), tile, Value(), ArrayAttr());
}
