// SPDX-License-Identifier: Apache-2.0
/// \file
/// Arithmetic on the elements of a tile, as maps of accumulators.
///
/// What of it follows from rows alone is a map of its own, of one column: it is computed once a row.
#include "TileMaps.h"

#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

static constexpr double kLog2E = 1.4426950408889634;

Value TileMaps::rounded(OpBuilder &b, Value acc, Type element) {
  auto type = cast<AccType>(acc.getType());
  auto map = MapOp::create(b, acc.getLoc(), AccType::get(b.getContext(), type.getShape(), element), acc, ValueRange());
  Block &body = map.getBody().emplaceBlock();
  Value wide = body.addArgument(type.getElementType(), acc.getLoc());
  OpBuilder in = OpBuilder::atBlockEnd(&body);
  YieldOp::create(in, acc.getLoc(), arith::TruncFOp::create(in, acc.getLoc(), element, wide).getResult());
  return map.getResult();
}

void TileMaps::divideByRows(LoopOp nest, TileVariance &variance) {
  nest->walk([&](arith::DivFOp quotient) {
    if (variance.of(quotient.getRhs()).size() != 1 || variance.of(quotient.getLhs()).size() != 2)
      return;
    OpBuilder b(quotient);
    Location loc = quotient.getLoc();
    Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(quotient.getType(), 1.0));
    Value part = arith::DivFOp::create(b, loc, one, quotient.getRhs());
    quotient.getResult().replaceAllUsesWith(arith::MulFOp::create(b, loc, quotient.getLhs(), part));
  });
}

/// Rows and columns of the tile, from those that all coordinates are counted from.
LogicalResult TileMaps::collectPlace(Value index) {
  std::optional<TileVariance::Place> place = variance.placeOf(index);
  if (!place)
    return failure();
  Value &base = bases[place->coordinate == row ? 0 : 1];
  if (readsPlace && base && base != place->base)
    return failure();
  base = place->base;
  readsPlace = true;
  return success();
}

/// Finds what the map takes of the value.
LogicalResult TileMaps::collect(OpBuilder &b, Value value) {
  const TileVariance::Coordinates &along = variance.of(value);
  Operation *op = value.getDefiningOp();
  if (along.empty() || known.contains(value)) {
    leaves.insert(value);
    return success();
  }
  if (value.getType().isIndex())
    return collectPlace(value);
  if (!op || !isPure(op) || op->getNumRegions() != 0 || op->getNumResults() != 1)
    return op ? refuseStatement(op) : refuseStatement(value.getParentBlock()->getParentOp());
  bool isOfRows = column && along.size() == 1 && along.contains(row) && isa<FloatType>(value.getType());
  if (isOfRows) {
    FailureOr<Value> made = TileMaps(variance, scalars, known, row).make(b, value, Value(), value.getLoc());
    if (failed(made))
      return failure();
    known[value] = *made;
    leaves.insert(value);
    return success();
  }
  for (Value operand : op->getOperands())
    if (failed(collect(b, operand)))
      return failure();
  return success();
}

/// exp x = 2^(x log2 e), which machines have; of a difference in two instructions, a factor of its left side included.
Value TileMaps::exponential(OpBuilder &b, Operation *op) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  auto constant = [&](double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(x.getType(), value)).getResult();
  };
  auto scaled = [&](Value value) { return arith::MulFOp::create(b, loc, compute(b, value), constant(kLog2E)).getResult(); };
  auto difference = x.getDefiningOp<arith::SubFOp>();
  if (!difference)
    return math::Exp2Op::create(b, loc, scaled(x), arith::FastMathFlags::afn);
  Value left = difference.getLhs(), less = arith::NegFOp::create(b, loc, scaled(difference.getRhs()));
  double by = kLog2E;
  FloatAttr factor;
  if (auto product = left.getDefiningOp<arith::MulFOp>(); product && matchPattern(product.getRhs(), m_Constant(&factor))) {
    left = product.getLhs();
    by *= factor.getValueAsDouble();
  }
  Value power = math::FmaOp::create(b, loc, compute(b, left), constant(by), less);
  return math::Exp2Op::create(b, loc, power, arith::FastMathFlags::afn);
}

Value TileMaps::compute(OpBuilder &b, Value value) {
  if (Value done = inner.lookupOrNull(value))
    return done;
  Operation *op = value.getDefiningOp();
  Value made;
  if (value.getType().isIndex()) { // a map is handed whole coordinates
    made = inner.lookup(variance.placeOf(value)->coordinate);
  } else if (isa<math::ExpOp>(op)) {
    made = exponential(b, op);
  } else {
    for (Value operand : op->getOperands())
      (void)compute(b, operand);
    made = b.clone(*op, inner)->getResult(0);
  }
  inner.map(value, made);
  return made;
}

FailureOr<Value> TileMaps::make(OpBuilder &b, Value value, Value column, Location loc, int64_t across) {
  this->column = column;
  SmallVector<int64_t> shape{variance.sizeOf(row), column ? variance.sizeOf(column) : across};
  auto type = AccType::get(b.getContext(), shape, value.getType());
  if (Value acc = known.lookup(value); acc && acc.getType() == type)
    return acc;
  if (failed(collect(b, value)))
    return failure();
  SmallVector<Value> accs, elements;
  for (Value leaf : leaves) {
    if (Value acc = known.lookup(leaf))
      accs.push_back(acc), elements.push_back(leaf);
    else if (!matchPattern(leaf, m_Constant()))
      inner.map(leaf, scalars.get(b, leaf));
  }
  if (accs.empty() && !readsPlace && variance.of(value).empty())
    return SplatOp::create(b, loc, type, scalars.get(b, value)).getResult();
  SmallVector<Value> places;
  for (Value base : readsPlace ? ArrayRef<Value>(bases) : ArrayRef<Value>())
    places.push_back(base ? scalars.get(b, base) : arith::ConstantIndexOp::create(b, loc, 0).getResult());
  auto map = MapOp::create(b, loc, type, accs, places);
  Block &body = map.getBody().emplaceBlock();
  for (auto [acc, leaf] : llvm::zip(accs, elements))
    inner.map(leaf, body.addArgument(cast<AccType>(acc.getType()).getElementType(), loc));
  OpBuilder in = OpBuilder::atBlockEnd(&body);
  if (readsPlace) {
    inner.map(row, body.addArgument(b.getIndexType(), loc));
    Value across = body.addArgument(b.getIndexType(), loc);
    if (column)
      inner.map(column, across);
  }
  YieldOp::create(in, loc, compute(in, value));
  return map.getResult();
}
