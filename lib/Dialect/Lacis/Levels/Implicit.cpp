// SPDX-License-Identifier: Apache-2.0
/// \file
/// Implicit coordinate: the place within the fibre.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute ImplicitCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeWidth("crd"));
}

void ImplicitCoordinateAttr::printArguments(KindArguments &arguments) const { arguments.addWidth("crd", getCrd()); }

LogicalResult ImplicitCoordinateAttr::verify(EmitError emitError, IntegerType crd) {
  return verifyWidth("crd", crd, emitError);
}

IntegerType ImplicitCoordinateAttr::getListedType() const { return getCrd(); }

bool ImplicitCoordinateAttr::hasCode() const { return true; }

bool ImplicitCoordinateAttr::isImplicit() const { return true; }

Coordinate ImplicitCoordinateAttr::emitCoordinate(LevelBuilder &level, Value lo, Value pos) const {
  return {arith::SubIOp::create(level.b, level.loc, pos, lo), Value()};
}

bool ImplicitCoordinateAttr::canSeek() const { return true; }

Value ImplicitCoordinateAttr::emitSeek(LevelBuilder &level, Value lo, Value hi, Value crd) const {
  Value pos = arith::AddIOp::create(level.b, level.loc, lo, crd);
  return arith::MinSIOp::create(level.b, level.loc, pos, hi);
}
