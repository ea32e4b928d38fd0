// SPDX-License-Identifier: Apache-2.0
/// \file
/// Bitmap coordinate: one bit for each coordinate of the fibre. It has no code yet.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute BitmapCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) {
  return get(context);
}

void BitmapCoordinateAttr::printArguments(KindArguments &) const {}
