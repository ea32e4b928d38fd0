// SPDX-License-Identifier: Apache-2.0
/// \file
/// Along which loops of a tile the values of a nest vary: what their operands do, but for the loops of a sum.
#include "TileVariance.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;
using namespace lacis;

const TileVariance::Coordinates &TileVariance::of(Value value) {
  if (auto known = found.find(value); known != found.end())
    return *known->second;
  auto made = std::make_unique<Coordinates>();
  Operation *op = value.getDefiningOp();
  auto follows = [&](Value from) { made->insert(of(from).begin(), of(from).end()); };
  if (sizes.contains(value)) {
    made->insert(value);
  } else if (isa_and_nonnull<LoopOp, LevelLoopOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber(), count = op->getNumResults();
    Block &body = op->getRegion(0).front();
    Value init = op->getOperands().take_back(count)[number];
    // What a sum begins with is the same in its first round as what it carries is in others.
    found[body.getArguments().take_back(count)[number]] = std::make_unique<Coordinates>(of(init));
    follows(init);
    follows(body.getTerminator()->getOperand(number));
    if (auto loop = dyn_cast<LoopOp>(op))
      made->remove(loop.getCoordinate());
  } else if (op) {
    llvm::for_each(op->getOperands(), follows);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getTerminator()->getOperands(), follows);
  }
  return *(found[value] = std::move(made));
}

int64_t lacis::neighboursOf(Value value, Value coordinate) {
  APInt size;
  if (value == coordinate)
    return 1;
  Operation *op = value.getDefiningOp();
  if (auto quotient = dyn_cast_if_present<arith::DivUIOp>(op);
      quotient && quotient.getLhs() == coordinate && matchPattern(quotient.getRhs(), m_ConstantInt(&size)))
    return size.getSExtValue();
  int64_t count = 0;
  for (Value operand : op ? ValueRange(op->getOperands()) : ValueRange())
    count = std::gcd(count, neighboursOf(operand, coordinate));
  return count;
}

/// The rest of a coordinate, or a number that is the same for all of a part.
std::optional<TileVariance::Place> TileVariance::digitOf(Value index) {
  if (of(index).size() != 1)
    return std::nullopt;
  Value coordinate = of(index)[0];
  APInt size;
  auto rest = index.getDefiningOp<arith::RemUIOp>();
  if (rest && rest.getLhs() == coordinate && matchPattern(rest.getRhs(), m_ConstantInt(&size)))
    return Place{Value(), coordinate, size.getSExtValue()};
  int64_t width = neighboursOf(index, coordinate);
  return width > 1 ? std::optional(Place{index, Value(), width}) : std::nullopt;
}

std::optional<TileVariance::Place> TileVariance::placeInParts(Value index) {
  if (isOfTile(index))
    return Place{Value(), index};
  if (of(index).empty())
    return Place{index, Value()};
  if (std::optional<Place> digit = digitOf(index))
    return digit;
  auto sum = index.getDefiningOp<arith::AddIOp>();
  if (!sum)
    return std::nullopt;
  std::optional<Place> lhs = placeInParts(sum.getLhs()), rhs = placeInParts(sum.getRhs());
  if (!lhs || !rhs || (lhs->base && rhs->base) || (lhs->coordinate && rhs->coordinate) || of(index).size() != 1)
    return std::nullopt;
  const Place &first = lhs->base ? *lhs : *rhs, &along = lhs->coordinate ? *lhs : *rhs;
  if (first.width && first.width != along.width)
    return std::nullopt;
  return Place{first.base, along.coordinate, along.width};
}

std::optional<TileVariance::Place> TileVariance::placeOf(Value index) {
  std::optional<Place> place = placeInParts(index);
  return place && place->width == 0 ? place : std::nullopt;
}

/// base + (min(offset, last) + rest)
std::optional<TileVariance::Window> TileVariance::windowOf(Value index) {
  auto outer = index.getDefiningOp<arith::AddIOp>();
  auto inner = outer ? outer.getRhs().getDefiningOp<arith::AddIOp>() : arith::AddIOp();
  auto begin = inner ? inner.getLhs().getDefiningOp<arith::MinUIOp>() : arith::MinUIOp();
  auto rest = inner ? inner.getRhs().getDefiningOp<arith::RemUIOp>() : arith::RemUIOp();
  APInt width, most;
  bool isIt = begin && rest && isOfTile(rest.getLhs()) && matchPattern(rest.getRhs(), m_ConstantInt(&width)) &&
              of(outer.getLhs()).empty() && of(begin.getRhs()).empty() && !of(begin).empty();
  if (!isIt)
    return std::nullopt;
  Value last = begin.getRhs();
  auto bounded = last.getDefiningOp<arith::MinUIOp>();
  if (!matchPattern(bounded ? bounded.getRhs() : last, m_ConstantInt(&most)))
    return std::nullopt;
  int64_t size = most.getSExtValue() + width.getSExtValue();
  return Window{outer.getLhs(), begin, last, rest.getLhs(), width.getSExtValue(), size};
}

Value TileVariance::baseOf(Value index) {
  std::optional<Window> window = windowOf(index);
  return window ? window->base : placeInParts(index)->base;
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
