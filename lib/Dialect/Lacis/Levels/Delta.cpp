// SPDX-License-Identifier: Apache-2.0
/// \file
/// Delta coordinate: the distance to the coordinate before, less one; all bits set say that no entry is there.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute DeltaCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeInteger().value_or(8));
}

void DeltaCoordinateAttr::printArguments(KindArguments &arguments) const { arguments.addInteger(getBits()); }

LogicalResult DeltaCoordinateAttr::verify(EmitError emitError, int64_t bits) {
  if (bits == 8 || bits == 16)
    return success();
  return emitError() << "a delta has 8 or 16 bits, not " << bits;
}

LogicalResult DeltaCoordinateAttr::verifyUnder(Attribute extent, ArrayRef<Digit>, EmitError emitError) const {
  auto above = cast<ExtentInterface>(extent);
  if (!above.coversDomain())
    return success();
  return emitError() << "extent '" << above.getMnemonic() << "' has every coordinate, so 'delta' would store nothing "
                     << "new: use 'dense', or 'var*delta' to leave coordinates out";
}

SmallVector<BufferSpec> DeltaCoordinateAttr::getBuffers() const {
  return {{"delta", IntegerType::get(getContext(), getBits()), BufferSpec::Positions, /*isUnsigned=*/true}};
}

bool DeltaCoordinateAttr::hasCode() const { return true; }

bool DeltaCoordinateAttr::isPadded() const { return true; }

bool DeltaCoordinateAttr::isStateless() const { return false; }

/// The coordinate before.
SmallVector<Value> DeltaCoordinateAttr::emitOpen(LevelBuilder &level, Value, Value) const {
  return {level.constant(-1)};
}

Coordinate DeltaCoordinateAttr::emitNext(LevelBuilder &level, Value, Value pos, ValueRange state) const {
  OpBuilder &b = level.b;
  Location loc = level.loc;
  Value delta = level.load("delta", pos), none = level.constant((int64_t(1) << getBits()) - 1);
  Value valid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, delta, none);
  Value behind = arith::AddIOp::create(b, loc, delta, level.constant(1));
  Value step = arith::SelectOp::create(b, loc, valid, behind, none);
  Value crd = arith::AddIOp::create(b, loc, state[0], step);
  return {crd, valid, {crd}};
}
