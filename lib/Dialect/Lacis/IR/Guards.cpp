// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is known about the coordinates of strips and vectors at the end of an axis.
#include "lacis/Dialect/Lacis/IR/Guards.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <numeric>

using namespace mlir;
using namespace lacis;

/// No vector or panel is as wide, and a product of two of these fits 64 bits.
static constexpr int64_t kMostMultiple = int64_t(1) << 30;

int64_t lacis::knownMultiple(Value index) {
  auto capped = [](int64_t multiple) {
    return multiple == 0 || multiple > kMostMultiple ? std::gcd(multiple, kMostMultiple) : multiple;
  };
  if (auto constant = getConstantIntValue(index))
    return capped(std::abs(*constant));
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp>(op))
    return std::gcd(knownMultiple(op->getOperand(0)), knownMultiple(op->getOperand(1)));
  if (isa_and_nonnull<arith::MulIOp>(op))
    return capped(knownMultiple(op->getOperand(0)) * knownMultiple(op->getOperand(1)));
  return 1;
}

bool lacis::fillStrips(Value size, int64_t factor) { return knownDivisor(size) % factor == 0; }

bool lacis::lieOnOneSide(Value first, int64_t count, Value size) {
  return knownDivisor(size) % count == 0 && knownMultiple(first) % count == 0;
}

namespace {
/// The largest value of a coordinate, behind the beginning of a strip of `factor` coordinates where it is in one.
struct Reach {
  int64_t last = 0, factor = 0;
};
} // namespace

/// Adds `scale` times `index` to what a coordinate reaches; false where nothing is known of it.
static bool addReach(Value index, int64_t scale, Value size, Reach &reach) {
  if (auto constant = getConstantIntValue(index))
    return reach.last += scale * *constant, *constant >= 0;
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp>(op))
    return addReach(op->getOperand(0), scale, size, reach) && addReach(op->getOperand(1), scale, size, reach);
  if (isa_and_nonnull<arith::MulIOp>(op))
    if (auto factor = getConstantIntValue(op->getOperand(1)))
      return *factor >= 0 && addReach(op->getOperand(0), scale * *factor, size, reach);
  auto argument = dyn_cast<BlockArgument>(index);
  auto loop = argument ? dyn_cast<LoopOp>(argument.getOwner()->getParentOp()) : LoopOp();
  if (!loop || argument != loop.getCoordinate())
    return false;
  if (std::optional<int64_t> trip = loop.getTrip())
    return reach.last += scale * std::max<int64_t>(*trip - 1, 0), true;
  auto strips = loop.getUpper().getDefiningOp<arith::CeilDivUIOp>();
  if (reach.factor != 0 || !strips || strips.getLhs() != size || getConstantIntValue(strips.getRhs()) != scale)
    return false;
  reach.factor = scale;
  return true;
}

bool lacis::lieInPanels(Value first, int64_t count, Value size, int64_t panel) {
  Reach reach;
  if (!addReach(first, 1, size, reach))
    return false;
  if (reach.factor != 0)
    return panel % reach.factor == 0 && reach.last + count <= reach.factor;
  std::optional<int64_t> known = knownSize(size);
  return known && reach.last + count <= llvm::divideCeil(*known, panel) * panel;
}
