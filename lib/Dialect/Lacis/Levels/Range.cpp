// SPDX-License-Identifier: Apache-2.0
/// \file
/// Range extent: the coordinates that a binding leaves inside the axes; positions for the others are padding.
#include "EveryCoordinate.h"

using namespace mlir;
using namespace lacis;

Attribute RangeExtentAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void RangeExtentAttr::printArguments(KindArguments &) const {}

LogicalResult RangeExtentAttr::verifyCoordinate(CoordinateInterface coordinate, EmitError emitError) const {
  if (coordinate.isImplicit())
    return success();
  return emitError() << "extent 'range' knows its coordinates, so '" << coordinate.getMnemonic()
                     << "' would store nothing new: leave it out";
}

bool RangeExtentAttr::hasCode() const { return true; }

bool RangeExtentAttr::coversDomain() const { return true; }

std::pair<Value, Value> RangeExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  return every_coordinate::bounds(level, parent);
}

Value RangeExtentAttr::emitSlots(LevelBuilder &level, Value parents) const {
  return every_coordinate::slots(level, parents);
}

/// Whoever knows the coordinate has tested what follows from it.
Value RangeExtentAttr::emitLocate(LevelBuilder &level, Value parent, Value crd) const {
  return every_coordinate::locate(level, parent, crd);
}
