// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which elements of a dense tensor the threads of a block, or one of them, read in one round of a loop.
#include "Footprint.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lacis;

bool lacis::isOnThreads(LoopOp loop) {
  return loop.getBind() && (isThread(*loop.getBind()) || isOfWarps(*loop.getBind()));
}

bool Footprint::isCommon(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument) {
    Operation *op = value.getDefiningOp();
    return isPure(op) && op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), [&](Value v) { return isCommon(v); });
  }
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<LoopOp>(owner))
    return argument == loop.getCoordinate() && owner->isAncestor(round) && (ofThread || !isOnThreads(loop));
  if (auto walk = dyn_cast<LevelLoopOp>(owner))
    return argument.getArgNumber() <= walk.getNumDigits() && owner->isAncestor(round) &&
           (ofThread || isCommon(walk.getParent()));
  return isa<func::FuncOp>(owner);
}

/// How many coordinates the threads have, or a loop inside runs over; nothing for other values.
std::optional<int64_t> Footprint::tripInRound(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<LoopOp>(argument.getOwner()->getParentOp()) : LoopOp();
  bool varies = loop && argument == loop.getCoordinate() && (isOnThreads(loop) || round->isProperAncestor(loop));
  return varies ? loop.getTrip() : std::nullopt;
}

std::optional<IndexRange> Footprint::rangeOf(Value index) const {
  if (auto constant = getConstantIntValue(index))
    return IndexRange{{}, *constant, *constant};
  if (auto trip = tripInRound(index))
    return IndexRange{{}, 0, *trip - 1};
  Operation *op = index.getDefiningOp();
  bool isSelect = isa_and_nonnull<arith::SelectOp>(op);
  if (isa_and_nonnull<arith::AddIOp>(op) || isSelect) {
    std::optional<IndexRange> lhs = rangeOf(op->getOperand(isSelect)), rhs = rangeOf(op->getOperand(1 + isSelect));
    if (!lhs || !rhs || (isSelect && !haveSameBegin(*lhs, *rhs)))
      return std::nullopt;
    if (isSelect)
      return IndexRange{lhs->common, std::min(lhs->lo, rhs->lo), std::max(lhs->hi, rhs->hi)};
    llvm::append_range(lhs->common, rhs->common);
    return IndexRange{lhs->common, lhs->lo + rhs->lo, lhs->hi + rhs->hi};
  }
  auto product = dyn_cast_or_null<arith::MulIOp>(op);
  auto factor = product ? getConstantIntValue(product.getRhs()) : std::nullopt;
  if (std::optional<IndexRange> range = factor && *factor >= 0 ? rangeOf(product.getLhs()) : std::nullopt) {
    for (auto &[value, times] : range->common)
      times *= *factor;
    return IndexRange{range->common, range->lo * *factor, range->hi * *factor};
  }
  return isCommon(index) ? std::optional(IndexRange{{{index, 1}}, 0, 0}) : std::nullopt;
}

Value Footprint::offset(OpBuilder &b, Value index) const {
  Operation *op = index.getDefiningOp();
  if (getConstantIntValue(index) || tripInRound(index))
    return index;
  Location loc = index.getLoc();
  if (isa_and_nonnull<arith::AddIOp>(op))
    return arith::AddIOp::create(b, loc, offset(b, op->getOperand(0)), offset(b, op->getOperand(1)));
  if (auto select = dyn_cast_or_null<arith::SelectOp>(op))
    return arith::SelectOp::create(b, loc, select.getCondition(), offset(b, select.getTrueValue()),
                                   offset(b, select.getFalseValue()));
  if (isa_and_nonnull<arith::MulIOp>(op) && getConstantIntValue(op->getOperand(1)))
    return arith::MulIOp::create(b, loc, offset(b, op->getOperand(0)), op->getOperand(1));
  return arith::ConstantIndexOp::create(b, loc, 0);
}

Value Footprint::again(OpBuilder &b, Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op || !round->isProperAncestor(op))
    return value;
  SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return again(b, v); });
  Operation *clone = b.clone(*op);
  clone->setOperands(operands);
  return clone->getResult(cast<OpResult>(value).getResultNumber());
}

Value Footprint::begin(OpBuilder &b, const IndexRange &range) const {
  Location loc = round->getLoc();
  Value sum = arith::ConstantIndexOp::create(b, loc, range.lo);
  for (auto [value, times] : range.common) {
    Value scaled = arith::MulIOp::create(b, loc, again(b, value), arith::ConstantIndexOp::create(b, loc, times));
    sum = arith::AddIOp::create(b, loc, scaled, sum);
  }
  return sum;
}

bool lacis::haveSameBegin(const IndexRange &a, const IndexRange &b) {
  if (a.common.size() != b.common.size())
    return false;
  SmallVector<std::pair<Value, int64_t>> rest(b.common);
  for (auto [value, times] : a.common) {
    auto *same = llvm::find_if(rest, [&](auto &term) { return term.second == times && isSameValue(term.first, value); });
    if (same == rest.end())
      return false;
    rest.erase(same);
  }
  return true;
}
