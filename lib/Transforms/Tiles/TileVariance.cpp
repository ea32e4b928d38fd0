// SPDX-License-Identifier: Apache-2.0
/// \file
/// Along which loops of a tile the values of a nest vary: what their operands do, but for the loops of a sum.
#include "TileVariance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

const TileVariance::Coordinates &TileVariance::of(Value value) {
  if (auto known = found.find(value); known != found.end())
    return *known->second;
  auto made = std::make_unique<Coordinates>();
  Operation *op = value.getDefiningOp();
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && isOfTile(argument))
    made->insert(argument);
  if (auto loop = dyn_cast_or_null<LoopOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    // What a sum begins with is the same in its first round as what it carries is in others.
    found[loop.getIterArgs()[number]] = std::make_unique<Coordinates>(of(loop.getInits()[number]));
    for (Value inner : {loop.getInits()[number], loop.getBlock()->getTerminator()->getOperand(number)})
      made->insert(of(inner).begin(), of(inner).end());
    made->remove(loop.getCoordinate());
  } else if (op) {
    for (Value operand : op->getOperands())
      made->insert(of(operand).begin(), of(operand).end());
  }
  return *(found[value] = std::move(made));
}

std::optional<TileVariance::Place> TileVariance::placeOf(Value index) {
  if (isOfTile(index))
    return Place{Value(), index};
  if (of(index).empty())
    return Place{index, Value()};
  auto sum = index.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return std::nullopt;
  std::optional<Place> lhs = placeOf(sum.getLhs()), rhs = placeOf(sum.getRhs());
  if (!lhs || !rhs || (lhs->base && rhs->base) || (lhs->coordinate && rhs->coordinate))
    return std::nullopt;
  return Place{lhs->base ? lhs->base : rhs->base, lhs->coordinate ? lhs->coordinate : rhs->coordinate};
}
