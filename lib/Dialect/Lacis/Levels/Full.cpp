// SPDX-License-Identifier: Apache-2.0
/// \file
/// Full extent: a position for every coordinate, found by arithmetic.
#include "EveryCoordinate.h"

using namespace mlir;
using namespace lacis;

Attribute FullExtentAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void FullExtentAttr::printArguments(KindArguments &) const {}

LogicalResult FullExtentAttr::verifyCoordinate(CoordinateInterface coordinate, EmitError emitError) const {
  if (!coordinate.isStored())
    return success();
  return emitError() << "extent 'full' has every coordinate, so '" << coordinate.getMnemonic()
                     << "' would store nothing new: use 'dense', or 'compressed' to leave coordinates out";
}

bool FullExtentAttr::hasCode() const { return true; }

bool FullExtentAttr::coversDomain() const { return true; }

std::pair<Value, Value> FullExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  return every_coordinate::bounds(level, parent);
}

Value FullExtentAttr::emitSlots(LevelBuilder &level, Value parents) const {
  return every_coordinate::slots(level, parents);
}

Value FullExtentAttr::emitLocate(LevelBuilder &level, Value parent, Value crd) const {
  return every_coordinate::locate(level, parent, crd);
}
