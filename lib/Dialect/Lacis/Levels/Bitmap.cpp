// SPDX-License-Identifier: Apache-2.0
/// \file
/// Bitmap coordinate: one bit for each coordinate of the fibre. Loops over it have no code yet.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute BitmapCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) {
  return get(context);
}

void BitmapCoordinateAttr::printArguments(KindArguments &) const {}

SmallVector<BufferSpec> BitmapCoordinateAttr::getBuffers() const {
  return {{"bits", IntegerType::get(getContext(), 32)}};
}

Value BitmapCoordinateAttr::emitPresence(LevelBuilder &level, Value parent) const { return level.load("bits", parent); }
