// SPDX-License-Identifier: Apache-2.0
/// \file
/// Along which loops of a tile the values of a nest vary: what their operands do, but for the loops of a sum.
#include "TileVariance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

void TileVariance::addAxis(Value index, ArrayRef<LoopOp> loops, int64_t size) {
  sizes[index] = size;
  axes[index] = index;
  for (LoopOp loop : loops)
    axes[loop.getCoordinate()] = index;
}

const TileVariance::Coordinates &TileVariance::of(Value value) {
  if (auto known = found.find(value); known != found.end())
    return *known->second;
  auto made = std::make_unique<Coordinates>();
  Operation *op = value.getDefiningOp();
  auto follows = [&](Value from) { made->insert(of(from).begin(), of(from).end()); };
  if (sizes.contains(value)) {
    made->insert(value);
  } else if (Value axis = axes.lookup(value)) {
    made->insert(axis);
  } else if (isa_and_nonnull<LoopOp, LevelLoopOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber(), count = op->getNumResults();
    Block &body = op->getRegion(0).front();
    Value init = op->getOperands().take_back(count)[number];
    // What a sum begins with is the same in its first round as what it carries is in others.
    found[body.getArguments().take_back(count)[number]] = std::make_unique<Coordinates>(of(init));
    follows(init);
    follows(body.getTerminator()->getOperand(number));
    if (auto loop = dyn_cast<LoopOp>(op); loop && axes.contains(loop.getCoordinate()))
      made->remove(axes[loop.getCoordinate()]);
    else if (loop)
      made->remove(loop.getCoordinate());
  } else if (op) {
    llvm::for_each(op->getOperands(), follows);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getTerminator()->getOperands(), follows);
  }
  return *(found[value] = std::move(made));
}

std::optional<TileVariance::Place> TileVariance::placeOf(Value index) {
  if (isOfTile(index))
    return Place{axes.lookup(index), index};
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

SmallVector<Value> lacis::foldDigits(ValueRange indices) {
  SmallVector<Value> whole;
  for (Value index : indices) {
    auto low = index.getDefiningOp<arith::RemUIOp>();
    auto high = low && whole.size() == 1 ? whole[0].getDefiningOp<arith::DivUIOp>() : arith::DivUIOp();
    if (high && high.getOperands() == low.getOperands())
      whole[0] = low.getLhs();
    else
      whole.push_back(index);
  }
  return whole;
}
