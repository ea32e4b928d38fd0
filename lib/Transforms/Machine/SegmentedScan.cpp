// SPDX-License-Identifier: Apache-2.0
/// \file
/// Carries segmented sums over the lanes of a warp: each takes what the lanes before it carry on, in steps of 1, 2, 4, ...
#include "Combine.h"

using namespace mlir;
using namespace lacis;

namespace {
/// One sum that a loop carries: `continues ? combiner(carried, own) : own`.
struct Segment {
  Value carried, continues, own;
  Operation *combiner;
};
} // namespace

static std::optional<Segment> segmentOf(scf::ForOp loop, unsigned number) {
  Value carried = loop.getRegionIterArg(number);
  auto next = loop.getBody()->getTerminator()->getOperand(number).getDefiningOp<arith::SelectOp>();
  Operation *combiner = next ? next.getTrueValue().getDefiningOp() : nullptr;
  if (!combiner || combiner->getBlock() != loop.getBody() || !llvm::is_contained(combiner->getOperands(), carried) ||
      !llvm::is_contained(combiner->getOperands(), next.getFalseValue()) || !loop.getResult(number).use_empty())
    return std::nullopt;
  return Segment{carried, next.getCondition(), next.getFalseValue(), combiner};
}

static Value fromBefore(OpBuilder &b, Location loc, Value value, Value members, int64_t distance) {
  Value offset = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(distance)));
  return exchange(b, loc, value, members, offset, NVVM::ShflKind::up);
}

/// What the lanes before this one carry on to it; `start` for the first.
static Value scan(OpBuilder &b, Location loc, const Segment &segment, Value lane, Value start, const LaneGroup &group) {
  Value members = membersOf(b, loc, group), sum = segment.own, continues = segment.continues;
  auto reaches = [&](int64_t distance) {
    Value least = arith::ConstantOp::create(b, loc, b.getIntegerAttr(lane.getType(), distance));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, lane, least).getResult();
  };
  for (int64_t distance = 1; distance < group.trip; distance *= 2) {
    Value before = fromBefore(b, loc, sum, members, distance * group.stride);
    Value goesBack = fromBefore(b, loc, continues, members, distance * group.stride);
    Value inside = reaches(distance);
    IRMapping mapping;
    mapping.map(segment.carried, before);
    mapping.map(segment.own, sum);
    Value both = b.clone(*segment.combiner, mapping)->getResult(0);
    sum = arith::SelectOp::create(b, loc, arith::AndIOp::create(b, loc, inside, continues), both, sum);
    Value further = arith::AndIOp::create(b, loc, continues, goesBack);
    continues = arith::SelectOp::create(b, loc, inside, further, continues);
  }
  Value before = fromBefore(b, loc, sum, members, group.stride);
  return arith::SelectOp::create(b, loc, reaches(1), before, start);
}

LogicalResult lacis::inlineLaneScan(scf::ForOp loop, Value coordinate, const LaneGroup &group) {
  SmallVector<Segment> segments;
  for (unsigned number = 0; number < loop.getNumResults(); ++number) {
    std::optional<Segment> segment = segmentOf(loop, number);
    if (!segment)
      return loop.emitError("bind: this loop carries no segmented sum that the lanes of a warp can share");
    segments.push_back(*segment);
  }
  loop.getInductionVar().replaceAllUsesWith(coordinate);
  loop.getBody()->getTerminator()->erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(), loop.getBody()->getOperations());
  for (auto [segment, start] : llvm::zip(segments, loop.getInitArgs())) {
    OpBuilder b(segment.combiner);
    Value before = scan(b, loop.getLoc(), segment, coordinate, start, group);
    segment.carried.replaceAllUsesWith(before);
  }
  loop.erase();
  return success();
}
