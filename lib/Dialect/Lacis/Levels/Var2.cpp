// SPDX-License-Identifier: Apache-2.0
/// \file
/// Variable extent with gaps: positions [lo[parent], hi[parent]) under each parent.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute Var2ExtentAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeWidth("pos"));
}

void Var2ExtentAttr::printArguments(KindArguments &arguments) const { arguments.addWidth("pos", getPos()); }

LogicalResult Var2ExtentAttr::verify(EmitError emitError, IntegerType pos) { return verifyWidth("pos", pos, emitError); }

LogicalResult Var2ExtentAttr::verifyCoordinate(CoordinateInterface coordinate, EmitError emitError) const {
  auto hasRoom = [](const BufferSpec &buffer) { return buffer.length == BufferSpec::Positions; };
  if (llvm::any_of(coordinate.getBuffers(), hasRoom))
    return success();
  return emitError() << "extent 'var2' needs an array with an element for each position, '" << coordinate.getMnemonic()
                     << "' has none: use 'var2*crd'";
}

SmallVector<BufferSpec> Var2ExtentAttr::getBuffers() const {
  return {{"lo", getPos(), BufferSpec::Parents}, {"hi", getPos(), BufferSpec::Parents}};
}

bool Var2ExtentAttr::hasCode() const { return true; }

std::pair<Value, Value> Var2ExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  Value lo = level.load("lo", parent);
  return {lo, level.load("hi", parent)};
}
