// SPDX-License-Identifier: Apache-2.0
/// \file
/// Link: the one position under each parent is a slot of another order of the same values.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute LinkKindAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeWidth("pos"));
}

void LinkKindAttr::printArguments(KindArguments &arguments) const { arguments.addWidth("pos", getPos()); }

LogicalResult LinkKindAttr::verify(EmitError emitError, IntegerType pos) { return verifyWidth("pos", pos, emitError); }

SmallVector<BufferSpec> LinkKindAttr::getBuffers() const { return {{"link", getPos(), BufferSpec::Positions}}; }

bool LinkKindAttr::hasCode() const { return true; }

bool LinkKindAttr::isPadded() const { return false; }

std::optional<int64_t> LinkKindAttr::getTrip() const { return 1; }

bool LinkKindAttr::isLink() const { return true; }

bool LinkKindAttr::isImplicit() const { return true; }

std::pair<Value, Value> LinkKindAttr::emitBounds(LevelBuilder &level, Value parent) const {
  Value lo = level.load("link", parent);
  return {lo, arith::AddIOp::create(level.b, level.loc, lo, level.constant(1))};
}

Value LinkKindAttr::emitSlots(LevelBuilder &level, Value parents) const { return parents; }

Coordinate LinkKindAttr::emitCoordinate(LevelBuilder &level, Value lo, Value pos) const {
  return {level.constant(0), Value()};
}
