// SPDX-License-Identifier: Apache-2.0
/// \file
/// Full extent: a position for every coordinate, found by arithmetic.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute FullExtentAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void FullExtentAttr::printArguments(KindArguments &) const {}

LogicalResult FullExtentAttr::verifyCoordinate(CoordinateInterface coordinate, EmitError emitError) const {
  if (!coordinate.isStored())
    return success();
  return emitError() << "extent 'full' has every coordinate, so '" << coordinate.getMnemonic()
                     << "' would store nothing new: use 'dense', or 'compressed' to leave coordinates out";
}

bool FullExtentAttr::hasCode() const { return true; }

bool FullExtentAttr::coversDomain() const { return true; }

std::pair<Value, Value> FullExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  Value lo = arith::MulIOp::create(level.b, level.loc, parent, level.size());
  Value hi = arith::AddIOp::create(level.b, level.loc, lo, level.size());
  return {lo, hi};
}

Value FullExtentAttr::emitSlots(LevelBuilder &level, Value parents) const {
  return arith::MulIOp::create(level.b, level.loc, parents, level.size());
}

Value FullExtentAttr::emitLocate(LevelBuilder &level, Value parent, Value crd) const {
  Value lo = arith::MulIOp::create(level.b, level.loc, parent, level.size());
  return arith::AddIOp::create(level.b, level.loc, lo, crd);
}
