// SPDX-License-Identifier: Apache-2.0
/// \file
/// Variable extent: positions [pos[parent], pos[parent + 1]) under each parent.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute VarExtentAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeWidth("pos"));
}

void VarExtentAttr::printArguments(KindArguments &arguments) const { arguments.addWidth("pos", getPos()); }

LogicalResult VarExtentAttr::verify(EmitError emitError, IntegerType pos) { return verifyWidth("pos", pos, emitError); }

LogicalResult VarExtentAttr::verifyCoordinate(CoordinateInterface coordinate, EmitError emitError) const {
  if (coordinate.getMnemonic() != "code")
    return success();
  return emitError() << "coordinate 'code' needs a fixed number of entries: use 'structured<n>'";
}

SmallVector<BufferSpec> VarExtentAttr::getBuffers() const { return {{"pos", getPos(), BufferSpec::Boundaries}}; }

bool VarExtentAttr::hasCode() const { return true; }

std::pair<Value, Value> VarExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  Value next = arith::AddIOp::create(level.b, level.loc, parent, level.constant(1));
  Value lo = level.load("pos", parent);
  return {lo, level.load("pos", next)};
}

Value VarExtentAttr::emitSlots(LevelBuilder &level, Value parents) const { return level.load("pos", parents); }
