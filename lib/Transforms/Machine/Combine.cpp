// SPDX-License-Identifier: Apache-2.0
/// \file
/// Brings the partial results of a sum together: the lanes of a warp by exchanges of halves.
#include "Combine.h"
#include "../Buffers/Combiner.h"
#include "../Buffers/SharedArray.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace lacis;

Value lacis::membersOf(OpBuilder &b, Location loc, const LaneGroup &group) {
  int64_t size = group.trip * group.stride;
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value))).getResult();
  };
  int64_t all = (int64_t(1) << size) - 1, step = group.alone ? group.stride : 1, some = 0;
  for (int64_t lane = 0; lane < size; lane += step)
    some |= int64_t(1) << lane;
  if (size == 32 && some == all)
    return constant(-1);
  Value first = arith::AndIOp::create(b, loc, group.lane, constant(-size | (step - 1)));
  return arith::ShLIOp::create(b, loc, constant(some), first);
}

Value lacis::exchange(OpBuilder &b, Location loc, Value value, Value members, Value offset, NVVM::ShflKind kind) {
  Type type = value.getType(), i32 = b.getI32Type();
  auto other = [&](Value part) { return exchange(b, loc, part, members, offset, kind); };
  if (auto vector = dyn_cast<VectorType>(type)) {
    Value result = value;
    for (int64_t n = 0; n < vector.getDimSize(0); ++n)
      result = vector::InsertOp::create(b, loc, other(vector::ExtractOp::create(b, loc, value, n)), result, n);
    return result;
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 32) { // the lanes of a warp are in reach: from 0, or up to 31
    int32_t clamp = kind == NVVM::ShflKind::up ? 0 : 31;
    return NVVM::ShflOp::create(b, loc, type, members, value, offset,
                                arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(clamp)), kind,
                                /*return_value_and_is_valid=*/UnitAttr());
  }
  Type whole = b.getIntegerType(bits);
  Value word = isa<IntegerType>(type) ? value : arith::BitcastOp::create(b, loc, whole, value).getResult();
  Value result;
  if (bits < 32) {
    word = arith::ExtUIOp::create(b, loc, i32, word);
    result = arith::TruncIOp::create(b, loc, whole, other(word));
  } else {
    Value half = arith::ConstantOp::create(b, loc, b.getIntegerAttr(whole, 32));
    Value low = arith::TruncIOp::create(b, loc, i32, word);
    Value high = arith::TruncIOp::create(b, loc, i32, arith::ShRUIOp::create(b, loc, word, half));
    low = arith::ExtUIOp::create(b, loc, whole, other(low));
    high = arith::ExtUIOp::create(b, loc, whole, other(high));
    result = arith::OrIOp::create(b, loc, low, arith::ShLIOp::create(b, loc, high, half));
  }
  return isa<IntegerType>(type) ? result : arith::BitcastOp::create(b, loc, type, result).getResult();
}

namespace {
/// What one unit sums up by itself, and how the sums of all are brought together.
struct OwnSums {
  vector::CombiningKind kind;
  SmallVector<Value> values;
};
} // namespace

/// The body of the loop at one coordinate, in its place: it sums from the neutral elements.
static FailureOr<OwnSums> inlineSum(scf::ForOp loop, Value coordinate) {
  OpBuilder b(loop);
  auto reduce = loop->getAttrOfType<ReductionAttr>("lacis.reduce");
  if (!reduce)
    return loop.emitError(
        "bind: the rounds of this loop are not added up by one operation, so units cannot share them");
  OwnSums sums{kindOf(reduce.getValue()), {}};
  for (Value carried : loop.getRegionIterArgs())
    carried.replaceAllUsesWith(
        arith::ConstantOp::create(b, loop.getLoc(), neutralOf(reduce.getValue(), carried.getType())));
  loop.getInductionVar().replaceAllUsesWith(coordinate);
  Operation *yield = loop.getBody()->getTerminator();
  sums.values.assign(yield->operand_begin(), yield->operand_end());
  yield->erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(), loop.getBody()->getOperations());
  return sums;
}

LogicalResult lacis::inlineLaneSum(scf::ForOp loop, Value coordinate, const LaneGroup &group) {
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  FailureOr<OwnSums> own = inlineSum(loop, coordinate);
  if (failed(own))
    return failure();
  Value members = membersOf(b, loc, group);
  for (auto [sum, init, result] : llvm::zip(own->values, loop.getInitArgs(), loop.getResults())) {
    for (int64_t bit = group.trip / 2; bit > 0; bit /= 2) {
      Value mask = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(bit * group.stride)));
      sum = vector::makeArithReduction(b, loc, own->kind, sum, exchange(b, loc, sum, members, mask));
    }
    result.replaceAllUsesWith(vector::makeArithReduction(b, loc, own->kind, init, sum));
  }
  loop.erase();
  return success();
}

/// The argument, or whatever else, that an address is counted from.
static Value rootOf(Value address) {
  while (auto place = address.getDefiningOp<LLVM::GEPOp>())
    address = place.getBase();
  return address;
}

namespace {
/// An operation after a sum: which of the results it needs, and whether it stores.
struct After {
  Operation *op;
  llvm::SmallBitVector needs;
  bool stores = false;
};

/// What each warp leaves of each sum for the others.
struct SharedSums {
  Location loc;
  Value array, lane;
  int64_t warps, width; // bytes of a sum

  Value constant(OpBuilder &b, int64_t value) const {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value place(OpBuilder &b, int64_t number, Value warp) const { // (sum, warp, lane)
    constexpr int64_t lanes = 32;
    Value row = arith::AddIOp::create(b, loc, constant(b, number * warps), warp);
    Value index = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, row, constant(b, lanes)), lane);
    Type element = LLVM::LLVMArrayType::get(b.getI8Type(), width);
    return LLVM::GEPOp::create(b, loc, array.getType(), element, array, ValueRange{index});
  }
  /// What all warps have left of a sum, added in their order.
  Value total(OpBuilder &b, int64_t number, vector::CombiningKind kind, Value init) const {
    Value total = init;
    for (int64_t other = 0; other < warps; ++other) {
      Value part = LLVM::LoadOp::create(b, loc, init.getType(), place(b, number, constant(b, other)));
      total = vector::makeArithReduction(b, loc, kind, total, part);
    }
    return total;
  }
};
} // namespace

/// What follows a sum in its block, where as many warps can share it: each store needs sums of one part, and nothing is
/// read that is written. Nothing where one warp must do it all.
static std::optional<SmallVector<After>> shareOut(scf::ForOp loop, int64_t parts) {
  SmallVector<After> tail;
  DenseMap<Operation *, llvm::SmallBitVector> needs;
  DenseSet<Value> read, written;
  unsigned count = loop.getNumResults();
  for (Operation *op = loop->getNextNode(); !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode()) {
    After &after = tail.emplace_back(After{op, llvm::SmallBitVector(count)});
    bool known = true;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *source = operand.getDefiningOp();
        if (source == loop)
          after.needs.set(cast<OpResult>(operand).getResultNumber());
        else if (auto found = needs.find(source); found != needs.end())
          after.needs |= found->second;
      }
      if (auto load = dyn_cast<LLVM::LoadOp>(inner))
        read.insert(rootOf(load.getAddr()));
      else if (auto store = dyn_cast<LLVM::StoreOp>(inner))
        after.stores = true, written.insert(rootOf(store.getAddr()));
      else
        known &= isa<scf::IfOp>(inner) || (inner->getNumRegions() == 0 && isMemoryEffectFree(inner));
    });
    int first = after.needs.find_first(), last = after.needs.find_last();
    if (!known || (after.stores && first >= 0 && first * parts / count != last * parts / count))
      return std::nullopt;
    needs[op] = after.needs;
  }
  bool apart = llvm::none_of(read, [&](Value root) { return written.contains(root); });
  return apart ? std::optional(tail) : std::nullopt;
}

/// The sums of a part, and what needs no others, by one warp.
static void finishPart(OpBuilder &b, scf::ForOp loop, const OwnSums &own, const SharedSums &sums, ArrayRef<After> tail,
                       int64_t part, int64_t parts) {
  IRMapping mapping;
  unsigned count = loop.getNumResults();
  llvm::SmallBitVector others(count);
  for (unsigned number = 0; number < count; ++number)
    if (number * parts / count != part)
      others.set(number);
    else
      mapping.map(loop.getResult(number), sums.total(b, number, own.kind, loop.getInitArgs()[number]));
  for (const After &after : tail)
    if (!after.needs.anyCommon(others) && (!after.stores || after.needs.any() || part == 0))
      b.clone(*after.op, mapping);
}

/// Adds up what warps have left and does all that follows in the block: each a part of it, or the first everything.
static void finishWarpSum(scf::ForOp loop, const OwnSums &own, const SharedSums &sums, Value warp) {
  Location loc = loop.getLoc();
  Block *block = loop->getBlock();
  int64_t parts = std::min<int64_t>(sums.warps, loop.getNumResults());
  std::optional<SmallVector<After>> tail = shareOut(loop, parts);
  OpBuilder b(loop);
  auto guard = [&](int64_t part) {
    Value isOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, warp, sums.constant(b, part));
    return scf::IfOp::create(b, loc, isOwn, /*withElseRegion=*/false);
  };
  if (tail) {
    for (int64_t part = 0; part < parts; ++part) {
      OpBuilder in = guard(part).getThenBodyBuilder();
      finishPart(in, loop, own, sums, *tail, part, parts);
    }
    for (After &after : llvm::reverse(*tail))
      after.op->erase();
    return;
  }
  Block *then = guard(0).thenBlock();
  OpBuilder first = OpBuilder::atBlockBegin(then);
  for (auto [number, init, result] : llvm::enumerate(loop.getInitArgs(), loop.getResults()))
    result.replaceAllUsesWith(sums.total(first, static_cast<int64_t>(number), own.kind, init));
  then->getOperations().splice(std::prev(then->end()), block->getOperations(), std::next(loop->getIterator()),
                               std::prev(block->end()));
}

/// Does a block come to the loop again?
static bool isRepeated(scf::ForOp loop) {
  for (auto around = loop->getParentOfType<scf::ForOp>(); around; around = around->getParentOfType<scf::ForOp>())
    if (!around->hasAttr("lacis.bind"))
      return true;
  return false;
}

LogicalResult lacis::inlineWarpSum(scf::ForOp loop, Value coordinate, Value lane, int64_t warps) {
  constexpr int64_t lanes = 32;
  Location loc = loop.getLoc();
  for (Value result : loop.getResults())
    for (Operation *user : result.getUsers())
      if (user->hasTrait<OpTrait::IsTerminator>())
        return loop.emitError("bind: the sum of this loop is carried on, so warps cannot share it");
  int64_t width = 4; // bytes of a sum: a power of two
  for (Type type : loop.getResultTypes()) {
    auto vector = dyn_cast<VectorType>(type);
    int64_t bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth() * (vector ? vector.getNumElements() : 1);
    width = std::max(width, static_cast<int64_t>(llvm::PowerOf2Ceil(bits / 8)));
  }
  int64_t bytes = warps * lanes * width * loop.getNumResults();
  if (bytes > kStaticSharedBytes)
    return loop.emitError("bind: ") << loop.getNumResults() << " sums of " << warps << " warps are " << bytes
                                    << " bytes of shared memory, more than " << kStaticSharedBytes;
  if (failed(liftOutOfGuards(loop)))
    return failure();
  OpBuilder b(loop);
  FailureOr<OwnSums> own = inlineSum(loop, coordinate);
  if (failed(own))
    return failure();
  Value warp = coordinate.getType().isInteger(32)
                   ? coordinate
                   : arith::TruncIOp::create(b, loc, b.getI32Type(), coordinate).getResult();
  SharedSums sums{loc, sharedArray(b, loop->getParentOfType<func::FuncOp>(), bytes), lane, warps, width};
  for (auto [number, sum] : llvm::enumerate(own->values))
    LLVM::StoreOp::create(b, loc, sum, sums.place(b, static_cast<int64_t>(number), warp));
  NVVM::BarrierOp::create(b, loc);
  finishWarpSum(loop, *own, sums, warp);
  if (isRepeated(loop)) { // what was left is read before the next round leaves its own
    b.setInsertionPoint(loop->getBlock()->getTerminator());
    NVVM::BarrierOp::create(b, loc);
  }
  loop.erase();
  return success();
}
