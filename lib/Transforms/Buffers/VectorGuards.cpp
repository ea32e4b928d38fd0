// SPDX-License-Identifier: Apache-2.0
/// \file
/// Guards of lanes: a number of active ones, a run of them between others, or all and none.
#include "Vectorizer.h"

using namespace mlir;
using namespace lacis;

/// Is it `coordinate >= bound`, or that and `coordinate < bound`: a run of lanes between others?
bool Vectorizer::isBand(Operation &op) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (compare && compare.getPredicate() == arith::CmpIPredicate::sge && isConsecutive(compare.getLhs()) &&
      !varies(compare.getRhs())) {
    Value first = scalars.lookupOrDefault(compare.getLhs()), least = scalars.lookupOrDefault(compare.getRhs());
    bands[compare] = {arith::SubIOp::create(b, op.getLoc(), least, first), {}, {}};
    return true;
  }
  if (!isa<arith::AndIOp>(op))
    return false;
  auto band = bands.find(op.getOperand(0));
  Value upto = counts.lookup(op.getOperand(1));
  if (band == bands.end() || !upto)
    return false;
  LaneBand both{band->second.from, fewer(band->second.upto, upto), {}};
  bands[op.getResult(0)] = both;
  return true;
}

/// All lanes at once where all pass the guard, else each by itself.
LogicalResult Vectorizer::bandOf(scf::IfOp guard, LaneBand band, Value count) {
  Location loc = guard.getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), all = arith::ConstantIndexOp::create(b, loc, width);
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, band.from, zero);
  if (band.upto)
    inside = arith::AndIOp::create(b, loc, inside,
                                   arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, band.upto, all));
  auto types = llvm::map_to_vector(guard.getResultTypes(), [&](Type type) -> Type { return VectorType::get({width}, type); });
  auto made = scf::IfOp::create(b, loc, types, inside, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToEnd(made.elseBlock());
  band.count = count;
  scf::YieldOp::create(b, loc, guardLanes(b, guard, width, band, [&](OpBuilder &at, Value outside, int64_t lane) {
                         return inLane(at, outside, lane);
                       }));
  b.setInsertionPointToEnd(made.thenBlock());
  if (failed(block(*guard.thenBlock(), count)))
    return failure();
  scf::YieldOp::create(b, loc, llvm::map_to_vector(guard.thenBlock()->getTerminator()->getOperands(),
                                                   [&](Value v) { return asVector(v); }));
  for (auto [before, after] : llvm::zip(guard.getResults(), made.getResults()))
    vectors[before] = after;
  return success();
}

Value Vectorizer::inLane(OpBuilder &at, Value value, int64_t lane) {
  Location loc = loop.getLoc();
  Value number = arith::ConstantIndexOp::create(at, loc, lane);
  if (Value vector = vectors.lookup(value))
    return vector::ExtractOp::create(at, loc, vector, lane);
  if (Value lanes = counts.lookup(value))
    return arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, number, lanes);
  Value first = scalars.lookupOrDefault(value);
  return isConsecutive(value) ? arith::AddIOp::create(at, loc, first, number).getResult() : first;
}

/// Two guards at once.
LogicalResult Vectorizer::both(Operation &op) {
  Value lhs = counts.lookup(op.getOperand(0)), rhs = counts.lookup(op.getOperand(1));
  counts[op.getResult(0)] = fewer(lhs, rhs);
  b.clone(op, scalars);
  return success();
}

/// Lanes past the end do nothing: their accesses are counted out, and their values are those of the other side.
LogicalResult Vectorizer::divide(scf::IfOp guard, Value lanes, Value count) {
  auto compare = guard.getCondition().getDefiningOp<arith::CmpIOp>();
  Value size = compare ? scalars.lookupOrDefault(compare.getRhs()) : Value(), around = std::exchange(bound, size);
  LogicalResult then = block(*guard.thenBlock(), fewer(count, lanes));
  bound = around;
  if (failed(then))
    return failure();
  if (guard.getNumResults() == 0)
    return success();
  if (failed(block(*guard.elseBlock(), count)))
    return failure();
  Value active = LanesOp::create(b, guard.getLoc(), VectorType::get({width}, b.getI1Type()), lanes);
  auto yes = guard.thenBlock()->getTerminator()->getOperands(), no = guard.elseBlock()->getTerminator()->getOperands();
  for (auto [result, then, otherwise] : llvm::zip(guard.getResults(), yes, no))
    vectors[result] = arith::SelectOp::create(b, guard.getLoc(), active, asVector(then), asVector(otherwise));
  return success();
}

LogicalResult Vectorizer::branch(scf::IfOp guard, Value count) {
  auto lanes = counts.find(guard.getCondition());
  if (lanes != counts.end() && lanes->second)
    return divide(guard, lanes->second, count);
  if (auto band = bands.find(guard.getCondition()); band != bands.end())
    return bandOf(guard, band->second, count);
  SmallVector<Type> types;
  for (Type type : guard.getResultTypes())
    types.push_back(VectorType::get({width}, type));
  auto made = scf::IfOp::create(b, guard.getLoc(), types, scalars.lookupOrDefault(guard.getCondition()),
                                /*addThenBlock=*/true, /*addElseBlock=*/guard.elseBlock() != nullptr);
  for (Region *region : {&guard.getThenRegion(), &guard.getElseRegion()}) {
    if (region->empty())
      continue;
    OpBuilder::InsertionGuard restore(b);
    b.setInsertionPointToEnd(&made->getRegion(region->getRegionNumber()).front());
    if (failed(block(region->front(), count)))
      return failure();
    auto yielded = llvm::map_to_vector(region->front().getTerminator()->getOperands(),
                                       [&](Value v) { return asVector(v); });
    scf::YieldOp::create(b, guard.getLoc(), yielded);
  }
  for (auto [before, after] : llvm::zip(guard.getResults(), made.getResults()))
    vectors[before] = after;
  return success();
}
