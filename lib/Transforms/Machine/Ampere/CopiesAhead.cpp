// SPDX-License-Identifier: Apache-2.0
/// \file
/// Consumers that copy: each round of the producer's loop becomes a piece of code for each ring.
#include "CopiesAhead.h"

#include "../../Buffers/Addressing.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

static bool isOfRings(Operation &op) { return isa<AcquireOp, ReleaseOp, AdvanceOp, RevisitOp>(op); }

static bool hasRings(Operation &op) {
  return op.walk([](Operation *inner) { return isOfRings(*inner) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

/// The one loop of a block that has operations of rings; null where there is none, or where others stand behind it or
/// have regions. `alone`: no other operation of the block may be of rings.
static scf::ForOp onlyLoop(Block &block, bool alone) {
  scf::ForOp found;
  for (Operation &op : block) {
    if (!hasRings(op))
      continue;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (found || (!loop && (alone || op.getNumRegions() != 0)))
      return {};
    found = loop;
  }
  return found;
}

static std::optional<int64_t> roundsOf(scf::ForOp loop) {
  std::optional<int64_t> begin = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound()), step = getConstantIntValue(loop.getStep());
  if (!begin || !end || !step || *end <= *begin)
    return std::nullopt;
  return (*end - *begin + *step - 1) / *step;
}

SmallVector<scf::ForOp> ampere::loopsToBegin(RolesOp roles) {
  SmallVector<scf::ForOp> loops;
  if (roles.getGroups() != 1)
    return loops;
  for (auto loop = onlyLoop(roles.getProducer().front(), /*alone=*/false); loop;
       loop = onlyLoop(*loop.getBody(), /*alone=*/true)) {
    bool isOutermost = loops.empty();
    auto isPlace = [&](Value init) { // the first one of its ring, from which rounds are counted
      return isa<RingType>(init.getType()) && (!isOutermost || init.getDefiningOp<RingOp>());
    };
    if (!llvm::all_of(loop.getInits(), isPlace) || (!isOutermost && !roundsOf(loop)))
      return {};
    loops.push_back(loop);
  }
  if (loops.empty())
    return loops;
  for (Operation &op : *loops.back().getBody())
    if (op.getNumRegions() != 0 && hasRings(op))
      return {};
  for (BlockArgument place : loops.back().getRegionIterArgs())
    if (llvm::count_if(place.getUsers(), llvm::IsaPred<AcquireOp>) != 1)
      return {};
  auto skips = roles.getConsumer().walk([](AdvanceOp) { return WalkResult::interrupt(); });
  return skips.wasInterrupted() ? SmallVector<scf::ForOp>() : loops;
}

BlockArgument CopiesAhead::argumentOf(RingOp ring) {
  for (BlockArgument argument : loops.back().getRegionIterArgs())
    if (ringOf(argument) == ring)
      return argument;
  return {};
}

/// The operations of a round that fill a place of one ring, and what they need, in order.
SmallVector<Operation *> CopiesAhead::partOf(BlockArgument ring) {
  SetVector<Operation *> needed;
  SmallVector<Operation *> open(ring.getUsers().begin(), ring.getUsers().end());
  auto acquire = cast<AcquireOp>(*llvm::find_if(ring.getUsers(), llvm::IsaPred<AcquireOp>));
  for (Value tile : acquire.getTiles())
    llvm::append_range(open, tile.getUsers());
  auto isOfRound = [&](Operation *op) {
    return llvm::any_of(loops, [&](scf::ForOp loop) { return op->getBlock() == loop.getBody(); });
  };
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!isOfRound(op) || op->hasTrait<OpTrait::IsTerminator>() || !needed.insert(op))
      continue;
    for (Value value : op->getOperands())
      if (Operation *from = value.getDefiningOp())
        open.push_back(from);
  }
  SmallVector<Operation *> inOrder;
  for (scf::ForOp loop : loops)
    for (Operation &op : *loop.getBody())
      if (needed.contains(&op))
        inOrder.push_back(&op);
  return inOrder;
}

Value CopiesAhead::setCounters(OpBuilder &b, Value round) {
  Location loc = round.getLoc();
  Instructions i(b, loc);
  for (scf::ForOp loop : llvm::reverse(loops)) {
    Value begin = mapping.lookupOrDefault(loop.getLowerBound()), step = mapping.lookupOrDefault(loop.getStep());
    Value own = round;
    if (loop != loops.front()) {
      Value rounds = i.constant(*roundsOf(loop));
      own = arith::RemUIOp::create(b, loc, round, rounds);
      round = arith::DivUIOp::create(b, loc, round, rounds);
    }
    Value behind = arith::MulIOp::create(b, loc, castInteger(b, loc, own, begin.getType()), step);
    mapping.map(loop.getInductionVar(), arith::AddIOp::create(b, loc, begin, behind).getResult());
  }
  Value end = mapping.lookupOrDefault(loops.front().getUpperBound());
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, mapping.lookup(loops.front().getInductionVar()), end);
}

LogicalResult CopiesAhead::copyRound(OpBuilder &b, RingOp ring, Value round, ValueRange place) {
  Value some = setCounters(b, round);
  OpBuilder then = scf::IfOp::create(b, round.getLoc(), some, /*withElseRegion=*/false).getThenBodyBuilder();
  BlockArgument argument = argumentOf(ring);
  setPieces(argument, place);
  for (Operation *op : partOf(argument)) {
    for (Value result : op->getResults())
      mapping.erase(result); // of another round
    if (failed(lowerOperation(then, *op)))
      return failure();
  }
  return success();
}

LogicalResult CopiesAhead::begin(OpBuilder &b) {
  Instructions i(b, loops.front().getLoc());
  for (Operation &op : loops.front()->getBlock()->without_terminator())
    if (&op != loops.front().getOperation() && failed(lowerOperation(b, op)))
      return failure();
  for (Value init : loops.front().getInits()) {
    RingOp ring = ringOf(init);
    for (int64_t stage = 0; stage < ring.getType().getStages() - 1; ++stage)
      if (failed(copyRound(b, ring, i.constant(stage), {i.constant(stage), i.constant(1)})))
        return failure();
  }
  return success();
}

/// The stage that was read last. A producer's parity of the first filling is 1.
LogicalResult CopiesAhead::copy(OpBuilder &b, RingOp ring, ArrayRef<Value> at) {
  Location loc = loops.front().getLoc();
  Instructions i(b, loc);
  int64_t ahead = ring.getType().getStages() - 1;
  Value isFirst = i.equal(at[Stage], 0);
  Value stage = arith::SelectOp::create(b, loc, isFirst, i.constant(ahead), i.add(at[Stage], -1));
  Value flipped = arith::XOrIOp::create(b, loc, at[Parity], i.constant(1));
  Value parity = arith::SelectOp::create(b, loc, isFirst, flipped, at[Parity]);
  return copyRound(b, ring, i.add(at[Round], ahead), {stage, parity});
}
