// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lanes one by one: the end of an array, and guards that some lanes pass and others do not.
#include "LaneByLane.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lacis;

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate predicate, Value value, int64_t with) {
  return arith::CmpIOp::create(b, loc, predicate, value, arith::ConstantIndexOp::create(b, loc, with));
}

Value lacis::loadFirstLanes(OpBuilder &b, Location loc, VectorType type, Value count,
                            llvm::function_ref<Value(OpBuilder &, int64_t, Type)> load) {
  Type element = type.getElementType();
  int64_t width = type.getDimSize(0);
  auto chosen = [&](OpBuilder &at, arith::CmpIPredicate predicate, int64_t lanes, Type result) {
    return scf::IfOp::create(at, loc, result, compare(at, loc, predicate, count, lanes), /*addThenBlock=*/true,
                             /*addElseBlock=*/true);
  };
  scf::IfOp whole = chosen(b, arith::CmpIPredicate::sge, width, type);
  OpBuilder then = OpBuilder::atBlockEnd(whole.thenBlock()), part = OpBuilder::atBlockEnd(whole.elseBlock());
  scf::YieldOp::create(then, loc, load(then, 0, type));
  SmallVector<Value> lanes;
  for (int64_t lane = 0; lane < width; ++lane) {
    scf::IfOp one = chosen(part, arith::CmpIPredicate::sgt, lane, element);
    OpBuilder inside = OpBuilder::atBlockEnd(one.thenBlock()), outside = OpBuilder::atBlockEnd(one.elseBlock());
    scf::YieldOp::create(inside, loc, load(inside, lane, element));
    scf::YieldOp::create(outside, loc, arith::ConstantOp::create(outside, loc, b.getZeroAttr(element)).getResult());
    lanes.push_back(one.getResult(0));
  }
  scf::YieldOp::create(part, loc, vector::FromElementsOp::create(part, loc, type, lanes).getResult());
  return whole.getResult(0);
}

/// The operations of `block` in one lane; answers what it yields.
static SmallVector<Value> cloneLane(OpBuilder &b, Block &block, llvm::function_ref<Value(OpBuilder &, Value)> valueOf) {
  IRMapping mapping;
  SetVector<Value> outside;
  getUsedValuesDefinedAbove(*block.getParent(), outside);
  for (Value value : outside)
    mapping.map(value, valueOf(b, value));
  for (Operation &op : block.without_terminator())
    b.clone(op, mapping);
  return llvm::map_to_vector(block.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<Value> lacis::guardLanes(OpBuilder &b, scf::IfOp guard, int64_t width, const LaneBand &band,
                                     llvm::function_ref<Value(OpBuilder &, Value, int64_t)> valueOf) {
  Location loc = guard.getLoc();
  SmallVector<SmallVector<Value>> results(guard.getNumResults());
  for (int64_t lane = 0; lane < width; ++lane) {
    Value active = compare(b, loc, arith::CmpIPredicate::sle, band.from, lane);
    for (Value limit : {band.upto, band.count})
      if (limit)
        active = arith::AndIOp::create(b, loc, active, compare(b, loc, arith::CmpIPredicate::sgt, limit, lane));
    auto one = scf::IfOp::create(b, loc, guard.getResultTypes(), active, /*addThenBlock=*/true,
                                 /*addElseBlock=*/guard.elseBlock() != nullptr);
    for (unsigned side = 0; side < one->getNumRegions(); ++side) {
      if (guard->getRegion(side).empty())
        continue;
      OpBuilder inner = OpBuilder::atBlockEnd(&one->getRegion(side).front());
      auto atLane = [&](OpBuilder &at, Value outside) { return valueOf(at, outside, lane); };
      scf::YieldOp::create(inner, loc, cloneLane(inner, guard->getRegion(side).front(), atLane));
    }
    for (auto [result, value] : llvm::zip(results, one.getResults()))
      result.push_back(value);
  }
  return llvm::map_to_vector(results, [&](ArrayRef<Value> lanes) -> Value {
    return vector::FromElementsOp::create(b, loc, VectorType::get({width}, lanes[0].getType()), lanes);
  });
}
