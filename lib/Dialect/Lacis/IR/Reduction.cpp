// SPDX-License-Identifier: Apache-2.0
/// \file
/// What loops bring together: recorded where a loop is made, and what it means for values.
#include "lacis/Dialect/Lacis/IR/Reduction.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

std::optional<Reduction> lacis::reductionOf(Operation *loop) {
  auto marked = dyn_cast<LoopOpInterface>(loop);
  return marked && loop->getNumResults() == 1 ? marked.getReduce() : std::nullopt;
}

//===- Values -------------------------------------------------------------===//

static arith::AtomicRMWKind arithmeticOf(Reduction kind, Type type) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(type));
  switch (kind) {
  case Reduction::Add:
    return isFloat ? arith::AtomicRMWKind::addf : arith::AtomicRMWKind::addi;
  case Reduction::Mul:
    return isFloat ? arith::AtomicRMWKind::mulf : arith::AtomicRMWKind::muli;
  case Reduction::Max:
    return arith::AtomicRMWKind::maximumf;
  case Reduction::Min:
    return arith::AtomicRMWKind::minimumf;
  case Reduction::Or:
    return arith::AtomicRMWKind::ori;
  case Reduction::And:
    return arith::AtomicRMWKind::andi;
  }
  llvm_unreachable("a reduction without arithmetic");
}

Value lacis::combine(OpBuilder &b, Location loc, Reduction kind, Value lhs, Value rhs) {
  return arith::getReductionOp(arithmeticOf(kind, lhs.getType()), b, loc, lhs, rhs);
}

TypedAttr lacis::neutralOf(Reduction kind, Type type) {
  OpBuilder b(type.getContext());
  TypedAttr neutral =
      arith::getIdentityValueAttr(arithmeticOf(kind, type), getElementTypeOrSelf(type), b, b.getUnknownLoc());
  auto lanes = dyn_cast<VectorType>(type);
  return lanes ? cast<TypedAttr>(DenseElementsAttr::get(lanes, Attribute(neutral))) : neutral;
}

bool lacis::isNeutral(Reduction kind, Value value) {
  Attribute constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return false;
  return constant == neutralOf(kind, value.getType()) ||
         (kind == Reduction::Add && matchPattern(value, m_AnyZeroFloat()));
}

//===- Bodies -------------------------------------------------------------===//

static std::optional<Reduction> kindOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Reduction>>(op)
      .Case<arith::AddFOp, arith::AddIOp>([](auto) { return Reduction::Add; })
      .Case<arith::MulFOp, arith::MulIOp>([](auto) { return Reduction::Mul; })
      .Case([](arith::MaximumFOp) { return Reduction::Max; })
      .Case([](arith::MinimumFOp) { return Reduction::Min; })
      .Case([](arith::OrIOp) { return Reduction::Or; })
      .Case([](arith::AndIOp) { return Reduction::And; })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Reduction> Combination::kind() const { return kindOf(op); }

/// What a block that is not verified yet ends with as its value `number` of `count`, or null.
static Value yielded(Region &region, unsigned number, unsigned count) {
  if (region.empty() || !region.front().mightHaveTerminator())
    return {};
  Operation *end = region.front().getTerminator();
  return end->getNumOperands() == count ? end->getOperand(number) : Value();
}

static Value yielded(Operation &op, unsigned side, unsigned number) {
  return side < op.getNumRegions() ? yielded(op.getRegion(side), number, op.getNumResults()) : Value();
}

/// What a block is carried as its value `number` of `count`, or null.
static Value carriedIn(Region &region, unsigned number, unsigned count) {
  if (region.empty() || region.getNumArguments() < count)
    return {};
  return region.getArguments().take_back(count)[number];
}

std::optional<Combination> lacis::combinationOf(Value next, Value carried) {
  Combination found;
  llvm::SmallPtrSet<Operation *, 8> seen; // a text may say that a result makes itself: it is verified later
  while (Operation *op = next ? next.getDefiningOp() : nullptr) {
    if (!seen.insert(op).second)
      return std::nullopt;
    unsigned result = cast<OpResult>(next).getResultNumber(), count = op->getNumResults();
    if (isa<LoopOp, LevelLoopOp>(op) && op->getNumRegions() == 1) {
      found.isOnly &= op->getNumOperands() > count && op->getOperands().take_back(count)[result] == carried;
      carried = carriedIn(op->getRegion(0), result, count);
      next = yielded(*op, 0, result);
    } else if (isa<scf::IfOp>(op)) {
      found.isOnly &= yielded(*op, 1, result) == carried;
      found.conditions.push_back(op->getOperand(0));
      next = yielded(*op, 0, result);
    } else if (isa<arith::SelectOp>(op) && op->getNumOperands() == 3) {
      found.isOnly &= op->getOperand(2) == carried;
      found.conditions.push_back(op->getOperand(0));
      next = op->getOperand(1);
    } else {
      if (op->getNumOperands() != 2 || !llvm::is_contained(op->getOperands(), carried))
        return std::nullopt;
      found.op = op, found.added = op->getOperand(op->getOperand(0) == carried);
      return found;
    }
  }
  return std::nullopt;
}

std::optional<Combination> lacis::combinationOf(Operation *loop) {
  std::optional<Combination> found = combinationOf(yielded(*loop, 0, 0), carriedIn(loop->getRegion(0), 0, 1));
  return found && found->isOnly ? found : std::nullopt;
}

arith::MulFOp lacis::factorsOf(Operation *loop) {
  std::optional<Combination> sum;
  if (reductionOf(loop) == Reduction::Add)
    sum = combinationOf(loop);
  return sum ? sum->added.getDefiningOp<arith::MulFOp>() : arith::MulFOp();
}

namespace {

/// Follows what a round makes back to what it was carried.
class Round {
public:
  explicit Round(Reduction kind) : kind(kind) {}

  /// `value` is `carried`, or what was brought to it, one after the other.
  bool addsTo(Value carried, Value value) {
    if (value == carried)
      return true;
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    auto [known, isNew] = seen.try_emplace({value, carried}, false);
    if (!isNew)
      return known->second;
    bool adds = addsTo(carried, *op, cast<OpResult>(value).getResultNumber());
    return seen[{value, carried}] = adds;
  }

private:
  bool addsTo(Value carried, Operation &op, unsigned result) {
    auto adds = [&](Value value) { return value && addsTo(carried, value); };
    unsigned count = op.getNumResults();
    if (auto loop = dyn_cast<LoopOpInterface>(op))
      return loop.getReduce() == kind && op.getNumOperands() > count && adds(op.getOperands().take_back(count)[result]);
    if (isa<scf::IfOp>(op))
      return adds(yielded(op, 0, result)) && adds(yielded(op, 1, result));
    if (isa<arith::SelectOp>(op) && op.getNumOperands() == 3)
      return adds(op.getOperand(1)) && adds(op.getOperand(2));
    if (isa<arith::ArithDialect>(op.getDialect()) && kindOf(&op) != kind)
      return false;
    return llvm::any_of(op.getOperands(), adds); // an instruction of a product brings what it makes to an operand
  }

  Reduction kind;
  llvm::DenseMap<std::pair<Value, Value>, bool> seen;
};

} // namespace

/// The body does that with all values that it is carried.
static bool does(Region &body, unsigned carried, Reduction kind) {
  Round round(kind);
  for (unsigned number = 0; number < carried; ++number) {
    Value before = carriedIn(body, number, carried), next = yielded(body, number, carried);
    if (!before || !next || !round.addsTo(before, next))
      return false;
  }
  return true;
}

std::optional<Reduction> lacis::reductionIn(Region &body, unsigned carried) {
  std::optional<Combination> found;
  if (carried != 0)
    found = combinationOf(yielded(body, 0, carried), carriedIn(body, 0, carried));
  std::optional<Reduction> kind = found ? found->kind() : std::nullopt;
  return kind && does(body, carried, *kind) ? kind : std::nullopt;
}

LogicalResult lacis::verifyReduction(LoopOpInterface loop) {
  std::optional<Reduction> kind = loop.getReduce();
  if (!kind)
    return success();
  if (loop->getNumResults() == 0)
    return loop->emitOpError() << "'reduce' is of a loop that carries values; loop '" << loop.getName() << "' carries none";
  if (does(loop->getRegion(0), loop->getNumResults(), *kind))
    return success();
  return loop->emitOpError() << "'reduce' of loop '" << loop.getName() << "' is '" << stringifyReduction(*kind)
                             << "', which its body does not do with what it carries";
}
