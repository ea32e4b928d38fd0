// SPDX-License-Identifier: Apache-2.0
/// \file
/// Even extent: positions [pos[parent], pos[parent + 1]), every `pos` even, so that pairs can be loaded at once.
#include "OutsideLevels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute EvenExtentAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError) {
  return get(context, arguments.takeWidth("pos"));
}

void EvenExtentAttr::printArguments(KindArguments &arguments) const { arguments.addWidth("pos", getPos()); }

SmallVector<BufferSpec> EvenExtentAttr::getBuffers() const { return {{"pos", getPos()}}; }

bool EvenExtentAttr::hasCode() const { return true; }

bool EvenExtentAttr::isPadded() const { return true; }

std::pair<Value, Value> EvenExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  Value next = arith::AddIOp::create(level.b, level.loc, parent, level.constant(1));
  Value lo = level.load("pos", parent);
  return {lo, level.load("pos", next)};
}

Value EvenExtentAttr::emitSlots(LevelBuilder &level, Value parents) const { return level.load("pos", parents); }
