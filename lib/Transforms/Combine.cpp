// SPDX-License-Identifier: Apache-2.0
/// \file
/// Brings the partial results of a sum together: the lanes of a warp by exchanges of halves.
#include "Combine.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

std::optional<vector::CombiningKind> lacis::kindOf(Operation *combiner) {
  return llvm::TypeSwitch<Operation *, std::optional<vector::CombiningKind>>(combiner)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return vector::CombiningKind::ADD; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return vector::CombiningKind::MUL; })
      .Case([](arith::MaximumFOp) { return vector::CombiningKind::MAXIMUMF; })
      .Case([](arith::MinimumFOp) { return vector::CombiningKind::MINIMUMF; })
      .Case([](arith::OrIOp) { return vector::CombiningKind::OR; })
      .Case([](arith::AndIOp) { return vector::CombiningKind::AND; })
      .Case([](vector::ReductionOp reduction) { return reduction.getKind(); })
      .Default([](Operation *) { return std::nullopt; });
}

/// The operation that adds to sum `number` of those which `loop` carries, behind inner loops, guards and selections.
static Operation *combinerOf(scf::ForOp loop, unsigned number) {
  Value value = loop.getBody()->getTerminator()->getOperand(number), carried = loop.getRegionIterArg(number);
  while (Operation *op = value.getDefiningOp()) {
    unsigned result = cast<OpResult>(value).getResultNumber();
    if (auto inner = dyn_cast<scf::ForOp>(op)) {
      carried = inner.getRegionIterArg(result);
      value = inner.getBody()->getTerminator()->getOperand(result);
    } else if (auto guard = dyn_cast<scf::IfOp>(op)) {
      value = guard.thenBlock()->getTerminator()->getOperand(result);
    } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
      value = select.getTrueValue();
    } else {
      return llvm::is_contained(op->getOperands(), carried) ? op : nullptr;
    }
  }
  return nullptr;
}

/// The value that changes no sum.
static Value neutralOf(OpBuilder &b, Location loc, vector::CombiningKind kind, Type type) {
  bool isFloat = isa<FloatType>(type);
  auto identity = [&](arith::AtomicRMWKind same) { return arith::getIdentityValue(same, type, b, loc); };
  switch (kind) {
  case vector::CombiningKind::MUL:
    return identity(isFloat ? arith::AtomicRMWKind::mulf : arith::AtomicRMWKind::muli);
  case vector::CombiningKind::MAXIMUMF:
    return identity(arith::AtomicRMWKind::maximumf);
  case vector::CombiningKind::MINIMUMF:
    return identity(arith::AtomicRMWKind::minimumf);
  case vector::CombiningKind::OR:
    return identity(arith::AtomicRMWKind::ori);
  case vector::CombiningKind::AND:
    return identity(arith::AtomicRMWKind::andi);
  default:
    return identity(isFloat ? arith::AtomicRMWKind::addf : arith::AtomicRMWKind::addi);
  }
}

/// The lanes that run with this one: those of its group, and of the groups between them.
static Value membersOf(OpBuilder &b, Location loc, const LaneGroup &group) {
  int64_t size = group.trip * group.stride;
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value))).getResult();
  };
  if (size == 32)
    return constant(-1);
  Value first = arith::AndIOp::create(b, loc, group.lane, constant(-size));
  return arith::ShLIOp::create(b, loc, constant((int64_t(1) << size) - 1), first);
}

/// The value that the lane whose number differs in the bits of `mask` has: 32 bits at a time.
static Value exchange(OpBuilder &b, Location loc, Value value, Value members, Value mask) {
  Type type = value.getType(), i32 = b.getI32Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 32)
    return NVVM::ShflOp::create(b, loc, type, members, value, mask,
                                arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(31)), NVVM::ShflKind::bfly,
                                /*return_value_and_is_valid=*/UnitAttr());
  Type whole = b.getIntegerType(bits);
  Value word = isa<IntegerType>(type) ? value : arith::BitcastOp::create(b, loc, whole, value).getResult();
  Value result;
  if (bits < 32) {
    word = arith::ExtUIOp::create(b, loc, i32, word);
    result = arith::TruncIOp::create(b, loc, whole, exchange(b, loc, word, members, mask));
  } else {
    Value half = arith::ConstantOp::create(b, loc, b.getIntegerAttr(whole, 32));
    Value low = arith::TruncIOp::create(b, loc, i32, word);
    Value high = arith::TruncIOp::create(b, loc, i32, arith::ShRUIOp::create(b, loc, word, half));
    low = arith::ExtUIOp::create(b, loc, whole, exchange(b, loc, low, members, mask));
    high = arith::ExtUIOp::create(b, loc, whole, exchange(b, loc, high, members, mask));
    result = arith::OrIOp::create(b, loc, low, arith::ShLIOp::create(b, loc, high, half));
  }
  return isa<IntegerType>(type) ? result : arith::BitcastOp::create(b, loc, type, result).getResult();
}

LogicalResult lacis::inlineLaneSum(scf::ForOp loop, Value coordinate, const LaneGroup &group) {
  Location loc = loop.getLoc();
  OpBuilder b(loop);
  SmallVector<vector::CombiningKind> kinds;
  for (unsigned number = 0; number < loop.getNumResults(); ++number) {
    Operation *combiner = combinerOf(loop, number);
    std::optional<vector::CombiningKind> kind = combiner ? kindOf(combiner) : std::nullopt;
    if (!kind)
      return loop.emitError("bind: the rounds of this loop are not added up by one operation, so lanes cannot share them");
    kinds.push_back(*kind);
    Value carried = loop.getRegionIterArg(number);
    carried.replaceAllUsesWith(neutralOf(b, loc, *kind, carried.getType()));
  }
  loop.getInductionVar().replaceAllUsesWith(coordinate);
  Operation *yield = loop.getBody()->getTerminator();
  SmallVector<Value> sums(yield->getOperands());
  yield->erase();
  loop->getBlock()->getOperations().splice(loop->getIterator(), loop.getBody()->getOperations());
  Value members = membersOf(b, loc, group);
  for (auto [kind, sum, init, result] : llvm::zip(kinds, sums, loop.getInitArgs(), loop.getResults())) {
    for (int64_t bit = group.trip / 2; bit > 0; bit /= 2) {
      Value mask = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(bit * group.stride)));
      sum = vector::makeArithReduction(b, loc, kind, sum, exchange(b, loc, sum, members, mask));
    }
    result.replaceAllUsesWith(vector::makeArithReduction(b, loc, kind, init, sum));
  }
  loop.erase();
  return success();
}
