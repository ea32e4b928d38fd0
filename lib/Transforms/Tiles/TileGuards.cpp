// SPDX-License-Identifier: Apache-2.0
/// \file
/// Conditions that say where axes end.
#include "TileGuards.h"

#include "lacis/Dialect/Lacis/IR/NestFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;

//===- Sizes --------------------------------------------------------------===//

namespace {
/// A number times sizes of axes that only the launch knows: of a letter, or of an axis of a tensor.
struct Extent {
  uint64_t known = 1;
  SmallVector<std::pair<const void *, unsigned>> axes;

  Extent operator*(const Extent &other) const {
    Extent both = *this;
    both.known *= other.known;
    llvm::append_range(both.axes, other.axes);
    llvm::sort(both.axes);
    return both;
  }
  bool isWithin(const Extent &other) const { return known <= other.known && axes == other.axes; }
};
} // namespace

/// The tensor that this one is seen through, with the same axes.
static Value behindViews(Value tensor) {
  while (Operation *op = tensor.getDefiningOp()) {
    if (!isa<WalkOp, PartOp, RegroupOp>(op))
      break;
    tensor = op->getOperand(0);
  }
  return tensor;
}

static Extent sizeOf(Value tensor, unsigned axis) {
  tensor = behindViews(tensor);
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(axis))
    return {static_cast<uint64_t>(type.getDimSize(axis)), {}};
  if (Attribute letter = letterOf(tensor, axis))
    return {1, {{letter.getAsOpaquePointer(), 0}}};
  return {1, {{tensor.getAsOpaquePointer(), axis}}};
}

static std::optional<Extent> extentOf(Value number) {
  APInt known;
  if (matchPattern(number, m_ConstantInt(&known)))
    return known.isNegative() ? std::nullopt : std::optional(Extent{known.getZExtValue(), {}});
  if (auto size = number.getDefiningOp<tensor::DimOp>()) {
    std::optional<unsigned> axis = axisOf(size);
    return axis ? std::optional(sizeOf(size.getSource(), *axis)) : std::nullopt;
  }
  auto product = number.getDefiningOp<arith::MulIOp>();
  std::optional<Extent> one = product ? extentOf(product.getLhs()) : std::nullopt;
  std::optional<Extent> other = one ? extentOf(product.getRhs()) : std::nullopt;
  return other ? std::optional(*one * *other) : std::nullopt;
}

//===- Ends ---------------------------------------------------------------===//

/// Is an index behind the end of its axis from `end` of `place` on? Of a place along fused axes the outermost has a quotient.
static bool endsAt(Value place, const Extent &end, Value tensor, ValueRange indices) {
  for (auto [axis, index] : llvm::enumerate(indices)) {
    Extent size = sizeOf(tensor, axis);
    Value from = index;
    while (from != place) {
      auto quotient = from.getDefiningOp<arith::DivUIOp>();
      std::optional<Extent> by = quotient ? extentOf(quotient.getRhs()) : std::nullopt;
      if (!by)
        break;
      size = size * *by;
      from = quotient.getLhs();
    }
    if (from == place && size.isWithin(end))
      return true;
  }
  return false;
}

/// Does `isBehind` hold for each place and end that the condition compares?
static bool saysEnds(Value condition, llvm::function_ref<bool(Value, const Extent &)> isBehind) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return saysEnds(both.getLhs(), isBehind) && saysEnds(both.getRhs(), isBehind);
  auto below = condition.getDefiningOp<arith::CmpIOp>();
  bool isBelow = below && llvm::is_contained({arith::CmpIPredicate::slt, arith::CmpIPredicate::ult}, below.getPredicate());
  std::optional<Extent> end = isBelow ? extentOf(below.getRhs()) : std::nullopt;
  return end && isBehind(below.getLhs(), *end);
}

bool lacis::isZeroWithout(Value condition, Value number) {
  Operation *op = number.getDefiningOp();
  if (isa_and_nonnull<arith::ExtFOp, arith::TruncFOp, arith::NegFOp, arith::MulFOp>(op))
    return llvm::any_of(op->getOperands(), [&](Value factor) { return isZeroWithout(condition, factor); });
  auto entry = condition.getDefiningOp<EntryOp>();
  if (auto value = dyn_cast_if_present<ValueOp>(op); value && entry)
    return value.getTensor() == entry.getTensor() && value.getPosition() == entry.getPosition();
  auto read = dyn_cast_if_present<ReadOp>(op);
  return read && saysEnds(condition, [&](Value place, const Extent &end) {
           return endsAt(place, end, read.getTensor(), read.getIndices());
         });
}

bool lacis::isOutsideWithout(Value condition, WriteOp store) {
  return saysEnds(condition, [&](Value place, const Extent &end) {
    return endsAt(place, end, store.getTensor(), store.getIndices());
  });
}
