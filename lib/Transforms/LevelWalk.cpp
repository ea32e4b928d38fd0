// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops that find coordinates in the levels of an operand.
#include "LevelWalk.h"

#include "lacis/Dialect/Lacis/IR/Nest.h"

using namespace mlir;
using namespace lacis;

static Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value Letter::digit(OpBuilder &b, Location loc, int64_t div, int64_t mod) const {
  for (const auto &[digit, value] : digits)
    if (digit.div == div && digit.mod == mod)
      return value;
  Value result = coordinate;
  if (div != 1)
    result = arith::DivUIOp::create(b, loc, result, constant(b, loc, div));
  if (mod != 0)
    result = arith::RemUIOp::create(b, loc, result, constant(b, loc, mod));
  return result;
}

void Letter::compose(OpBuilder &b, Location loc) {
  for (const auto &[digit, value] : digits) {
    Value term = digit.div == 1 ? value : arith::MulIOp::create(b, loc, value, constant(b, loc, digit.div));
    coordinate = coordinate ? arith::AddIOp::create(b, loc, coordinate, term) : term;
  }
}

bool lacis::needsGuard(Value size, int64_t div, unsigned count) {
  return count > 1 || div > 1 ? knownDivisor(size) % div != 0 : false;
}

LevelWalk::LevelWalk(Location loc, Value tensor, ArrayRef<Letter *> axes)
    : loc(loc), tensor(tensor),
      format(cast<FormatAttr>(cast<RankedTensorType>(tensor.getType()).getEncoding())), axes(axes) {}

unsigned LevelWalk::digitsOf(unsigned axis) const {
  unsigned count = 0;
  for (LevelAttr level : format.getLevels())
    count += llvm::count_if(level.getDigits(), [&](Digit d) { return d.axis == axis; });
  return count;
}

std::string LevelWalk::loopName(LevelAttr level) const {
  std::string name;
  for (Digit digit : level.getDigits()) {
    unsigned rank = 0; // how many digits of the axis are more significant
    for (LevelAttr other : format.getLevels())
      rank += llvm::count_if(other.getDigits(),
                             [&](Digit d) { return d.axis == digit.axis && d.div > digit.div; });
    name += (name.empty() ? "" : "_") + digitName(axes[digit.axis]->name, rank, digitsOf(digit.axis));
  }
  return name;
}

Value LevelWalk::emit(OpBuilder &b, Value carried, Body body) {
  return emitLevel(b, 0, constant(b, loc, 0), carried, body);
}

Value LevelWalk::emitLevel(OpBuilder &b, unsigned number, Value parent, Value carried, Body body) {
  if (number == format.getLevels().size())
    return body(b, parent, carried);
  LevelAttr level = format.getLevels()[number];
  auto isKnown = [&](Digit d) { return static_cast<bool>(axes[d.axis]->coordinate); };
  if (llvm::all_of(level.getDigits(), isKnown)) { // a link has no digits
    SmallVector<Value> digits;
    for (Digit d : level.getDigits())
      digits.push_back(axes[d.axis]->digit(b, loc, d.div, d.mod));
    Value position = LocateOp::create(b, loc, b.getIndexType(), tensor, number, parent, digits);
    return emitLevel(b, number + 1, position, carried, body);
  }
  if (level.getExtent().coversDomain()) {
    SmallVector<Value> digits;
    return emitDense(b, number, 0, parent, digits, carried, body);
  }
  auto loop = LevelLoopOp::create(b, loc, loopName(level), tensor, number, parent, carried);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
  SmallVector<Value> digits(loop.getCoordinates());
  Value result = emitFound(inner, number, digits, loop.getPosition(), loop.getIterArgs()[0], body);
  YieldOp::create(inner, loc, result);
  return loop.getResult(0);
}

/// A loop for each digit of a dense level, then its position by arithmetic.
Value LevelWalk::emitDense(OpBuilder &b, unsigned number, unsigned which, Value parent,
                           SmallVectorImpl<Value> &known, Value carried, Body body) {
  LevelAttr level = format.getLevels()[number];
  if (which == level.getDigits().size()) {
    Value position = LocateOp::create(b, loc, b.getIndexType(), tensor, number, parent, ValueRange(known));
    return emitFound(b, number, known, position, carried, body);
  }
  Digit digit = level.getDigits()[which];
  Value upper = digit.mod ? constant(b, loc, digit.mod) : axes[digit.axis]->size;
  if (!digit.mod && digit.div != 1)
    upper = arith::CeilDivUIOp::create(b, loc, upper, constant(b, loc, digit.div));
  LevelAttr single = LevelAttr::get(b.getContext(), digit, level.getExtent(), level.getCoordinate());
  auto loop = LoopOp::create(b, loc, loopName(single), upper, carried);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
  known.push_back(loop.getCoordinate());
  Value result = emitDense(inner, number, which + 1, parent, known, loop.getIterArgs()[0], body);
  YieldOp::create(inner, loc, result);
  return loop.getResult(0);
}

/// Notes the digits that a loop found; guards an axis that the blocks do not divide once it is whole.
Value LevelWalk::emitFound(OpBuilder &b, unsigned number, ValueRange digits, Value position, Value carried,
                           Body body) {
  SmallVector<std::pair<Letter *, Letter>> before;
  Value inside;
  for (auto [digit, value] : llvm::zip(format.getLevels()[number].getDigits(), digits)) {
    Letter *letter = axes[digit.axis];
    before.push_back({letter, *letter});
    letter->digits.push_back({digit, value});
    if (letter->digits.size() != digitsOf(digit.axis))
      continue;
    letter->compose(b, loc);
    int64_t largest = 1;
    for (auto &[known, unused] : letter->digits)
      largest = std::max(largest, known.div);
    if (!needsGuard(letter->size, largest, letter->digits.size()))
      continue;
    Value ok = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, letter->coordinate, letter->size);
    inside = inside ? arith::AndIOp::create(b, loc, inside, ok) : ok;
  }
  Value result;
  if (inside) {
    auto guard = scf::IfOp::create(b, loc, carried.getType(), inside, /*withElseRegion=*/true);
    OpBuilder then = guard.getThenBodyBuilder();
    scf::YieldOp::create(then, loc, emitLevel(then, number + 1, position, carried, body));
    OpBuilder otherwise = guard.getElseBodyBuilder();
    scf::YieldOp::create(otherwise, loc, carried);
    result = guard.getResult(0);
  } else {
    result = emitLevel(b, number + 1, position, carried, body);
  }
  for (auto &[letter, state] : llvm::reverse(before))
    *letter = state;
  return result;
}
