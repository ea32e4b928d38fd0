// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stored coordinate: one element of `crd` for every position, -1 where there is no entry.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

Attribute StoredCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  bool unique = arguments.takeFlag("unique", true), ordered = arguments.takeFlag("ordered", true);
  bool pad = arguments.takeFlag("pad", arguments.padByDefault);
  return getChecked(emitError, context, unique, ordered, pad, arguments.takeWidth("crd"));
}

void StoredCoordinateAttr::printArguments(KindArguments &arguments) const {
  arguments.addFlag("unique", getUnique(), true);
  arguments.addFlag("ordered", getOrdered(), true);
  arguments.addFlag("pad", getPad(), arguments.padByDefault);
  arguments.addWidth("crd", getCrd());
}

LogicalResult StoredCoordinateAttr::verify(EmitError emitError, bool, bool, bool, IntegerType crd) {
  return verifyWidth("crd", crd, emitError);
}

SmallVector<BufferSpec> StoredCoordinateAttr::getBuffers() const { return {{"crd", getCrd(), BufferSpec::Positions}}; }

bool StoredCoordinateAttr::hasCode() const { return true; }

bool StoredCoordinateAttr::isStored() const { return true; }

IntegerType StoredCoordinateAttr::getListedType() const { return getCrd(); }

bool StoredCoordinateAttr::isOrdered() const { return getOrdered(); }

bool StoredCoordinateAttr::isUnique() const { return getUnique(); }

bool StoredCoordinateAttr::isPadded() const { return getPad(); }

Coordinate StoredCoordinateAttr::emitCoordinate(LevelBuilder &level, Value lo, Value pos) const {
  Value crd = level.load("crd", pos);
  if (!getPad())
    return {crd, Value()};
  Value zero = level.constant(0);
  Value valid = arith::CmpIOp::create(level.b, level.loc, arith::CmpIPredicate::sge, crd, zero);
  return {arith::MaxSIOp::create(level.b, level.loc, crd, zero), valid};
}

/// True when the coordinate at `middle` lies before `crd`; padding lies behind everything.
static Value emitBefore(StoredCoordinateAttr self, LevelBuilder &level, Value middle, Value crd) {
  Coordinate here = self.emitCoordinate(level, Value(), middle);
  Value before = arith::CmpIOp::create(level.b, level.loc, arith::CmpIPredicate::slt, here.crd, crd);
  return here.valid ? arith::AndIOp::create(level.b, level.loc, before, here.valid) : before;
}

bool StoredCoordinateAttr::canSeek() const { return getOrdered(); }

Value StoredCoordinateAttr::emitSeek(LevelBuilder &level, Value lo, Value hi, Value crd) const {
  if (!getOrdered())
    return {};
  Location loc = level.loc;
  auto condition = [&](OpBuilder &b, Location, ValueRange range) {
    Value open = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, range[0], range[1]);
    scf::ConditionOp::create(b, loc, open, range);
  };
  auto halve = [&](OpBuilder &, Location, ValueRange range) {
    OpBuilder &b = level.b;
    Value distance = arith::SubIOp::create(b, loc, range[1], range[0]);
    Value half = arith::ShRUIOp::create(b, loc, distance, level.constant(1));
    Value middle = arith::AddIOp::create(b, loc, range[0], half);
    Value after = arith::AddIOp::create(b, loc, middle, level.constant(1));
    Value before = emitBefore(*this, level, middle, crd);
    Value newLo = arith::SelectOp::create(b, loc, before, after, range[0]);
    Value newHi = arith::SelectOp::create(b, loc, before, range[1], middle);
    scf::YieldOp::create(b, loc, ValueRange{newLo, newHi});
  };
  auto search = scf::WhileOp::create(level.b, loc, TypeRange{lo.getType(), hi.getType()}, ValueRange{lo, hi},
                                     condition, halve);
  return search.getResult(0);
}
