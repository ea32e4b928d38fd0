// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where a condition on coordinates is true in all of a tile: interval arithmetic on what it compares.
#include "WholeTiles.h"

#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

namespace {

/// Of a value in all of the tile; null where none are known.
struct Bounds {
  Value least, most;
  explicit operator bool() const { return least != nullptr; }
};

class TileBounds {
public:
  TileBounds(OpBuilder &b, TileVariance &variance, RoleScalars &scalars) : b(b), variance(variance), scalars(scalars) {}
  /// Of one part of a gathered tile, whose numbers are those of `own`.
  TileBounds(OpBuilder &b, TileVariance &variance, RoleScalars &own, RoleScalars &whole)
      : b(b), variance(variance), scalars(own), gathered(&whole) {}
  Value isTrue(Value condition);

private:
  Bounds of(Value value);
  Bounds ofIndex(Value index);
  Bounds ofProduct(Operation *op);
  Bounds ofDistance(Operation *op);
  /// The operation on other operands.
  Value again(Operation *op, ValueRange operands);
  Value largest(Value one, Value other) { return arith::MaximumFOp::create(b, one.getLoc(), one, other); }

  OpBuilder &b;
  TileVariance &variance;
  RoleScalars &scalars;
  RoleScalars *gathered = nullptr;
};

} // namespace

Value TileBounds::again(Operation *op, ValueRange operands) {
  IRMapping mapping;
  mapping.map(op->getOperands(), operands);
  return b.clone(*op, mapping)->getResult(0);
}

Bounds TileBounds::ofIndex(Value index) {
  std::optional<TileVariance::Place> place = variance.placeOf(index);
  if (!place || !place->coordinate)
    return {};
  Location loc = index.getLoc();
  Value least = scalars.baseOf(b, *place, loc);
  int64_t parts = gathered && gathered->isGathered(place->base) ? gathered->parts.size() : 1;
  Value last = arith::ConstantIndexOp::create(b, loc, variance.sizeOf(place->coordinate) / parts - 1);
  return {least, arith::AddIOp::create(b, loc, least, last)};
}

/// A constant times another value.
Bounds TileBounds::ofProduct(Operation *op) {
  FloatAttr factor;
  if (!matchPattern(op->getOperand(1), m_Constant(&factor)))
    return {};
  Bounds one = of(op->getOperand(0));
  if (!one)
    return {};
  Value constant = scalars.get(b, op->getOperand(1));
  Bounds made{again(op, {one.least, constant}), again(op, {one.most, constant})};
  return factor.getValue().isNegative() ? Bounds{made.most, made.least} : made;
}

Bounds TileBounds::ofDistance(Operation *op) {
  Bounds one = of(op->getOperand(0));
  if (!one)
    return {};
  Location loc = op->getLoc();
  Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(op->getResult(0).getType(), 0.0));
  Value other = arith::NegFOp::create(b, loc, one.least);
  Value beyond = arith::NegFOp::create(b, loc, one.most);
  return {largest(largest(one.least, beyond), zero), largest(other, one.most)};
}

Bounds TileBounds::of(Value value) {
  if (variance.of(value).empty()) {
    Value number = scalars.get(b, value);
    return {number, number};
  }
  Operation *op = value.getDefiningOp();
  if (value.getType().isIndex())
    return ofIndex(value);
  if (isa_and_nonnull<arith::MulFOp>(op))
    return ofProduct(op);
  if (isa_and_nonnull<math::AbsFOp>(op))
    return ofDistance(op);
  bool falls = isa_and_nonnull<arith::SubFOp, arith::NegFOp>(op); // with the last operand
  if (!falls && !isa_and_nonnull<arith::IndexCastOp, arith::SIToFPOp, arith::AddFOp, arith::MaximumFOp, arith::MinimumFOp>(op))
    return {};
  SmallVector<Value> least, most;
  for (Value operand : op->getOperands()) {
    Bounds one = of(operand);
    if (!one)
      return {};
    least.push_back(one.least);
    most.push_back(one.most);
  }
  if (falls)
    std::swap(least.back(), most.back());
  return {again(op, least), again(op, most)};
}

Value TileBounds::isTrue(Value condition) {
  Operation *op = condition.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op)) {
    Value one = isTrue(op->getOperand(0)), other = one ? isTrue(op->getOperand(1)) : Value();
    return other ? again(op, {one, other}) : Value();
  }
  if (auto below = dyn_cast_if_present<arith::CmpIOp>(op); below && below.getPredicate() == arith::CmpIPredicate::slt) {
    Bounds lhs = of(below.getLhs()), rhs = lhs ? of(below.getRhs()) : Bounds();
    return rhs ? again(op, {lhs.most, rhs.least}) : Value();
  }
  auto compared = dyn_cast_if_present<arith::CmpFOp>(op);
  if (!compared)
    return {};
  using Predicate = arith::CmpFPredicate;
  bool isBelow = llvm::is_contained({Predicate::OLE, Predicate::OLT}, compared.getPredicate());
  if (!isBelow && !llvm::is_contained({Predicate::OGE, Predicate::OGT}, compared.getPredicate()))
    return {};
  Bounds lhs = of(compared.getLhs()), rhs = lhs ? of(compared.getRhs()) : Bounds();
  if (!rhs)
    return {};
  return isBelow ? again(op, {lhs.most, rhs.least}) : again(op, {lhs.least, rhs.most});
}

Value lacis::isTrueInTile(OpBuilder &b, Value condition, TileVariance &variance, RoleScalars &scalars) {
  if (variance.of(condition).empty())
    return {};
  if (scalars.parts.empty())
    return TileBounds(b, variance, scalars).isTrue(condition);
  Value all;
  for (RoleScalars &own : scalars.parts) {
    Value is = TileBounds(b, variance, own, scalars).isTrue(condition);
    if (!is)
      return {};
    all = all ? arith::AndIOp::create(b, condition.getLoc(), all, is).getResult() : is;
  }
  return all;
}
