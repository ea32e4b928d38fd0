// SPDX-License-Identifier: Apache-2.0
/// \file
/// Variable extent: positions [pos[parent], pos[parent + 1]) under each parent.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

Attribute VarExtentAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeWidth("pos"));
}

void VarExtentAttr::printArguments(KindArguments &arguments) const { arguments.addWidth("pos", getPos()); }

LogicalResult VarExtentAttr::verify(EmitError emitError, IntegerType pos) { return verifyWidth("pos", pos, emitError); }

SmallVector<BufferSpec> VarExtentAttr::getBuffers() const { return {{"pos", getPos(), BufferSpec::Boundaries}}; }

bool VarExtentAttr::hasCode() const { return true; }

std::pair<Value, Value> VarExtentAttr::emitBounds(LevelBuilder &level, Value parent) const {
  Value next = arith::AddIOp::create(level.b, level.loc, parent, level.constant(1));
  Value lo = level.load("pos", parent);
  return {lo, level.load("pos", next)};
}

Value VarExtentAttr::emitSlots(LevelBuilder &level, Value parents) const { return level.load("pos", parents); }

bool VarExtentAttr::hasOwner() const { return true; }

/// A search by halves: `pos[owner] <= position` holds throughout, `count` parents from `owner` on are left.
Value VarExtentAttr::emitOwner(LevelBuilder &level, Value position, Value parents) const {
  OpBuilder &b = level.b;
  Location loc = level.loc;
  Value one = level.constant(1);
  SmallVector<Value> start{level.constant(0), parents};
  auto search = scf::WhileOp::create(
      b, loc, TypeRange(ValueRange(start)), start,
      [&](OpBuilder &inner, Location at, ValueRange state) {
        Value more = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::sgt, state[1], one);
        scf::ConditionOp::create(inner, at, more, state);
      },
      [&](OpBuilder &inner, Location at, ValueRange state) {
        Value half = arith::ShRUIOp::create(inner, at, state[1], one);
        Value middle = arith::AddIOp::create(inner, at, state[0], half);
        Value begin = level.load("pos", middle);
        Value below = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::sle, begin, position);
        Value owner = arith::SelectOp::create(inner, at, below, middle, state[0]);
        scf::YieldOp::create(inner, at, ValueRange{owner, arith::SubIOp::create(inner, at, state[1], half)});
      });
  return search.getResult(0);
}
