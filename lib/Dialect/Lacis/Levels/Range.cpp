// SPDX-License-Identifier: Apache-2.0
/// \file
/// Range extent: the coordinates that remain inside the axes under the parent's coordinate. Loops
/// walk its companion.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

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

bool RangeExtentAttr::hasCompanion() const { return true; }
