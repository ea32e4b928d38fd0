// SPDX-License-Identifier: Apache-2.0
/// \file
/// Batch extent: values only, under one shared pattern. It has no code yet.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

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
