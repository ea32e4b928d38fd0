// SPDX-License-Identifier: Apache-2.0
/// \file
/// Extent one: the position is the parent's own.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute OneExtentAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void OneExtentAttr::printArguments(KindArguments &) const {}

LogicalResult OneExtentAttr::verifyCoordinate(CoordinateInterface coordinate, EmitError emitError) const {
  if (coordinate.isStored())
    return success();
  return emitError() << "extent 'one' needs a stored coordinate, not '" << coordinate.getMnemonic()
                     << "': use 'singleton'";
}

bool OneExtentAttr::hasCode() const { return true; }

std::optional<int64_t> OneExtentAttr::getTrip() const { return 1; }

bool OneExtentAttr::followsParent() const { return true; }

std::pair<Value, Value> OneExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  return {parent, arith::AddIOp::create(level.b, level.loc, parent, level.constant(1))};
}

Value OneExtentAttr::emitSlots(LevelBuilder &level, Value parents) const { return parents; }
