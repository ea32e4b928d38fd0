// SPDX-License-Identifier: Apache-2.0
/// \file
/// Elements of operands that arithmetic reads at the rows and columns of a tile: loads run beside products.
#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

/// Does the index follow from coordinates of the tile and from numbers alone?
static bool isOfPlaces(Value index, TileVariance &variance) {
  if (variance.of(index).empty() || variance.placeOf(index))
    return true;
  Operation *op = index.getDefiningOp();
  return op && isPure(op) && llvm::all_of(op->getOperands(), [&](Value from) { return isOfPlaces(from, variance); });
}

void TileStatements::readAhead(OpBuilder &b, LoopOp statement) {
  row = statement.getCoordinate();
  statement->walk([&](ReadOp read) {
    bool isElement = isa<BlockArgument>(read.getTensor()) && !boxes.contains(read) && read->hasOneUse();
    SmallVector<Value> along(variance.of(read.getResult()).getArrayRef());
    llvm::erase(along, row);
    bool isOfTile = along.size() == 1 && variance.of(read.getResult()).contains(row);
    if (!isElement || !isOfTile || !llvm::all_of(read.getIndices(), [&](Value at) { return isOfPlaces(at, variance); }))
      return;
    auto wide = dyn_cast<arith::ExtFOp>(*read->user_begin());
    Value value = wide ? wide.getResult() : read.getResult();
    if (FailureOr<Value> made = tile(b, value, along[0], read.getLoc()); succeeded(made))
      known[value] = *made;
  });
}
