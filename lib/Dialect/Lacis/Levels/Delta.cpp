// SPDX-License-Identifier: Apache-2.0
/// \file
/// Delta coordinate: the distance to the coordinate before, in a few bits. It has no code yet.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute DeltaCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeInteger().value_or(8));
}

void DeltaCoordinateAttr::printArguments(KindArguments &arguments) const { arguments.addInteger(getBits()); }

LogicalResult DeltaCoordinateAttr::verify(EmitError emitError, int64_t bits) {
  if (bits > 0 && bits <= 32)
    return success();
  return emitError() << "a delta has 1 to 32 bits, not " << bits;
}

bool DeltaCoordinateAttr::isStored() const { return true; }

bool DeltaCoordinateAttr::isStateless() const { return false; }
