// SPDX-License-Identifier: Apache-2.0
/// \file
/// Batch extent: values only, in copies that share the pattern below. A position is the number of a copy, by
/// arithmetic.
#include "EveryCoordinate.h"

using namespace mlir;
using namespace lacis;

Attribute BatchExtentAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void BatchExtentAttr::printArguments(KindArguments &) const {}

LogicalResult BatchExtentAttr::verifyCoordinate(CoordinateInterface coordinate, EmitError emitError) const {
  if (coordinate.isImplicit())
    return success();
  return emitError() << "extent 'batch' stores values only, so it takes no coordinate '" << coordinate.getMnemonic()
                     << "': leave it out";
}

bool BatchExtentAttr::hasCode() const { return true; }

bool BatchExtentAttr::coversDomain() const { return true; }

bool BatchExtentAttr::sharesPattern() const { return true; }

std::pair<Value, Value> BatchExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  return every_coordinate::bounds(level, parent);
}

Value BatchExtentAttr::emitSlots(LevelBuilder &level, Value parents) const {
  return every_coordinate::slots(level, parents);
}

Value BatchExtentAttr::emitLocate(LevelBuilder &level, Value parent, Value crd) const {
  return every_coordinate::locate(level, parent, crd);
}
