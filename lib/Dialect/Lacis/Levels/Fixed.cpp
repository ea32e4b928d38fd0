// SPDX-License-Identifier: Apache-2.0
/// \file
/// Fixed extent: the same number of positions under each parent, padded at the end.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute FixedExtentAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeInteger().value_or(ShapedType::kDynamic));
}

void FixedExtentAttr::printArguments(KindArguments &arguments) const { arguments.addInteger(getWidth()); }

LogicalResult FixedExtentAttr::verify(EmitError emitError, int64_t width) {
  if (width > 0 || ShapedType::isDynamic(width))
    return success();
  return emitError() << "a width must be positive, not " << width << ": write '?' for a width known at run time";
}

LogicalResult FixedExtentAttr::verifyCoordinate(CoordinateInterface coordinate, EmitError emitError) const {
  if (!coordinate.isImplicit())
    return success();
  return emitError() << "extent 'fixed' with an implicit coordinate is a dense level: use 'dense', or 'packed' to "
                        "store coordinates";
}

bool FixedExtentAttr::hasCode() const { return true; }

std::optional<int64_t> FixedExtentAttr::getTrip() const {
  return ShapedType::isDynamic(getWidth()) ? std::nullopt : std::optional<int64_t>(getWidth());
}

bool FixedExtentAttr::hasCapacity() const { return true; }

bool FixedExtentAttr::isPadded() const { return true; }

static Value widthOf(FixedExtentAttr extent, LevelBuilder &level) {
  return extent.getTrip() ? level.constant(extent.getWidth()) : level.width();
}

std::pair<Value, Value> FixedExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  Value width = widthOf(*this, level);
  Value lo = arith::MulIOp::create(level.b, level.loc, parent, width);
  Value hi = arith::AddIOp::create(level.b, level.loc, lo, width);
  return {lo, hi};
}

Value FixedExtentAttr::emitSlots(LevelBuilder &level, Value parents) const {
  return arith::MulIOp::create(level.b, level.loc, parents, widthOf(*this, level));
}

bool FixedExtentAttr::hasOwner() const { return true; }

Value FixedExtentAttr::emitOwner(LevelBuilder &level, Value position, Value parents) const {
  Value owner = arith::DivUIOp::create(level.b, level.loc, position, widthOf(*this, level));
  Value last = arith::SubIOp::create(level.b, level.loc, parents, level.constant(1));
  return arith::MinSIOp::create(level.b, level.loc, owner, last);
}
