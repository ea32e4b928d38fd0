// SPDX-License-Identifier: Apache-2.0
/// \file
/// Mirrored coordinate: `crd` holds the distance from the far end; -1 where there is no entry.
#include "OutsideLevels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute MirroredCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError) {
  bool pad = arguments.takeFlag("pad", arguments.padByDefault);
  return get(context, pad, arguments.takeWidth("crd"));
}

void MirroredCoordinateAttr::printArguments(KindArguments &arguments) const {
  arguments.addFlag("pad", getPad(), arguments.padByDefault);
  arguments.addWidth("crd", getCrd());
}

SmallVector<BufferSpec> MirroredCoordinateAttr::getBuffers() const { return {{"crd", getCrd(), BufferSpec::Positions}}; }

bool MirroredCoordinateAttr::hasCode() const { return true; }

bool MirroredCoordinateAttr::isStored() const { return true; }

bool MirroredCoordinateAttr::isPadded() const { return getPad(); }

Coordinate MirroredCoordinateAttr::emitCoordinate(LevelBuilder &level, Value lo, Value pos) const {
  Value stored = level.load("crd", pos), zero = level.constant(0);
  Value last = arith::SubIOp::create(level.b, level.loc, level.size(), level.constant(1));
  Value crd = arith::SubIOp::create(level.b, level.loc, last, stored);
  if (!getPad())
    return {crd, Value()};
  Value valid = arith::CmpIOp::create(level.b, level.loc, arith::CmpIPredicate::sge, stored, zero);
  return {arith::SelectOp::create(level.b, level.loc, valid, crd, zero), valid};
}
