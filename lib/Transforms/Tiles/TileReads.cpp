// SPDX-License-Identifier: Apache-2.0
/// \file
/// What statements of tiles read: tensors of a nest, vectors along columns, sums that were kept.
#include "KeptTiles.h"
#include "TileVectors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

/// What a tensor of the round holds where it is read, or a number for each column; boxes wait for the product.
LogicalResult TileStatements::read(OpBuilder &b, ReadOp op) {
  if (!op.getTensor().getDefiningOp<WorkspaceOp>()) {
    auto [box, tile] = boxes.find(op);
    if (Value columns = box ? Value() : loadColumns(b, op, row, variance, scalars))
      known[op.getResult()] = columns;
    if (!box || tile == 0)
      return success();
    Value column = variance.placeOf(op.getIndices().back())->coordinate;
    auto type = AccType::get(b.getContext(), {variance.sizeOf(row), variance.sizeOf(column)}, op.getType());
    known[op.getResult()] = ReadColumnsOp::create(b, op.getLoc(), type, acquire(b, *box, tile));
    release(b, *box);
    return success();
  }
  if (isKept(op.getTensor())) {
    if (op->hasOneUse() && isa<arith::AddFOp>(*op->user_begin())) // the statement loads it onto what it is added to
      return success();
    FailureOr<Value> made = loadKept(b, op, /*onto=*/Value(), variance, scalars);
    if (succeeded(made))
      known[op.getResult()] = *made;
    return made;
  }
  if (!state(op.getTensor()) || op.getIndices().front() != row)
    return refuseStatement(op);
  known[op.getResult()] = columnsOf(b, op);
  return success();
}

/// What a tensor holds of the columns that the read takes, which may be a part.
Value TileStatements::columnsOf(OpBuilder &b, ReadOp op) {
  Value acc = state(op.getTensor());
  auto type = cast<AccType>(acc.getType());
  std::optional<TileVariance::Place> place = variance.placeOf(op.getIndices().back());
  if (op.getIndices().size() != 2 || !place || variance.sizeOf(place->coordinate) == type.getColumns())
    return acc;
  APInt first(64, 0);
  if (place->base && !matchPattern(place->base, m_ConstantInt(&first)))
    return acc;
  auto part = AccType::get(b.getContext(), {type.getShape()[0], variance.sizeOf(place->coordinate)}, type.getElementType());
  return ColumnsOp::create(b, op.getLoc(), part, acc, first.getSExtValue());
}
