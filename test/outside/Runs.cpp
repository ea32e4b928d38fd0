// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs: a bit in `begins` for each position that begins a run, the run's first coordinate in `start`, and in `first` how
/// many runs lie before each parent. A walk knows the run that comes next, and the coordinate before.
#include "OutsideLevels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

Attribute RunsCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void RunsCoordinateAttr::printArguments(KindArguments &) const {}

SmallVector<BufferSpec> RunsCoordinateAttr::getBuffers() const {
  Type word = IntegerType::get(getContext(), 32);
  return {{"first", word, BufferSpec::Boundaries},
          {"begins", word, BufferSpec::Unknown, /*isUnsigned=*/true},
          {"start", word}};
}

bool RunsCoordinateAttr::hasCode() const { return true; }

bool RunsCoordinateAttr::isStateless() const { return false; }

SmallVector<Value> RunsCoordinateAttr::emitOpen(LevelBuilder &level, Value parent, Value) const {
  return {level.load("first", parent), level.constant(-1)};
}

Coordinate RunsCoordinateAttr::emitNext(LevelBuilder &level, Value, Value pos, ValueRange state) const {
  OpBuilder &b = level.b;
  Location loc = level.loc;
  Value one = level.constant(1), size = level.constant(32);
  Value word = level.load("begins", arith::DivUIOp::create(b, loc, pos, size));
  Value shifted = arith::ShRUIOp::create(b, loc, word, arith::RemUIOp::create(b, loc, pos, size));
  Value bit = arith::AndIOp::create(b, loc, shifted, one);
  Value next = arith::AddIOp::create(b, loc, state[0], bit);
  Value start = level.load("start", arith::SubIOp::create(b, loc, next, one));
  Value begins = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, bit, one);
  Value behind = arith::AddIOp::create(b, loc, state[1], one);
  Value crd = arith::SelectOp::create(b, loc, begins, start, behind);
  return {crd, Value(), {next, crd}};
}
