// SPDX-License-Identifier: Apache-2.0
/// \file
/// Bitmap coordinate: one bit for each coordinate of the fibre, in words of 32 bits.
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

static constexpr int64_t kWord = 32, kMost = 1024;

Attribute BitmapCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError) {
  return get(context, arguments.padByDefault);
}

void BitmapCoordinateAttr::printArguments(KindArguments &) const {}

LogicalResult BitmapCoordinateAttr::verifyUnder(Attribute extent, ArrayRef<Digit> digits, EmitError emitError) const {
  auto above = cast<ExtentInterface>(extent);
  if (above.hasCapacity() && !above.getTrip())
    return emitError() << "extent '" << above.getMnemonic() << "' with 'bitmap' needs a width: no array shows how long "
                       << "a fibre is";
  int64_t size = 1;
  for (const Digit &digit : digits) {
    if (digit.mod == 0)
      return success(); // known when a tensor is packed
    size *= std::min(digit.mod, kMost + 1);
    if (size > kMost)
      return emitError() << "a bitmap has bits for " << kMost << " coordinates at the most: block the axis";
  }
  return success();
}

SmallVector<BufferSpec> BitmapCoordinateAttr::getBuffers() const {
  return {{"bits", IntegerType::get(getContext(), kWord), BufferSpec::Bits, /*isUnsigned=*/true}};
}

bool BitmapCoordinateAttr::hasCode() const { return true; }

bool BitmapCoordinateAttr::isPadded() const { return getPad(); }

bool BitmapCoordinateAttr::isStateless() const { return false; }

static Value firstWord(LevelBuilder &level, Value parent) {
  OpBuilder &b = level.b;
  Value last = arith::AddIOp::create(b, level.loc, level.size(), level.constant(kWord - 1));
  Value words = arith::DivUIOp::create(b, level.loc, last, level.constant(kWord));
  return arith::MulIOp::create(b, level.loc, parent, words);
}

/// The number of the next word, the coordinate of its first bit less 32, and the bits that are left of the word before.
SmallVector<Value> BitmapCoordinateAttr::emitOpen(LevelBuilder &level, Value parent, Value) const {
  return {firstWord(level, parent), level.constant(-kWord), level.constant(0)};
}

/// Goes on to the next word that has a bit; the lowest bit is the coordinate.
Coordinate BitmapCoordinateAttr::emitNext(LevelBuilder &level, Value, Value, ValueRange state) const {
  Location loc = level.loc;
  Value size = level.size(), zero = level.constant(0), one = level.constant(1), word = level.constant(kWord);
  auto condition = [&](OpBuilder &b, Location, ValueRange at) {
    Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, at[2], zero);
    Value next = arith::AddIOp::create(b, loc, at[1], word);
    Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, next, size);
    scf::ConditionOp::create(b, loc, arith::AndIOp::create(b, loc, none, more), at);
  };
  auto advance = [&](OpBuilder &, Location, ValueRange at) {
    OpBuilder &b = level.b;
    Value bits = level.load("bits", at[0]);
    Value next = arith::AddIOp::create(b, loc, at[0], one), base = arith::AddIOp::create(b, loc, at[1], word);
    scf::YieldOp::create(b, loc, ValueRange{next, base, bits});
  };
  auto found = scf::WhileOp::create(level.b, loc, TypeRange(state), state, condition, advance);
  Value base = found.getResult(1), bits = found.getResult(2);
  Value bit = math::CountTrailingZerosOp::create(level.b, loc, bits);
  Value crd = arith::AddIOp::create(level.b, loc, base, bit);
  Value below = arith::SubIOp::create(level.b, loc, bits, one);
  Value rest = arith::AndIOp::create(level.b, loc, bits, below);
  Value valid = getPad() ? arith::CmpIOp::create(level.b, loc, arith::CmpIPredicate::ne, bits, zero) : Value();
  return {crd, valid, {found.getResult(0), base, rest}};
}

bool BitmapCoordinateAttr::canFind() const { return true; }

/// Where not every coordinate has a position, as many lie before it as bits are set below its own.
std::pair<Value, Value> BitmapCoordinateAttr::emitFind(LevelBuilder &level, Value parent, Value crd) const {
  OpBuilder &b = level.b;
  Location loc = level.loc;
  Value zero = level.constant(0), one = level.constant(1), word = level.constant(kWord);
  Value first = firstWord(level, parent);
  Value number = arith::DivUIOp::create(b, loc, crd, word), bit = arith::RemUIOp::create(b, loc, crd, word);
  Value own = level.load("bits", arith::AddIOp::create(b, loc, first, number));
  Value mask = arith::ShLIOp::create(b, loc, one, bit);
  Value isSet = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, arith::AndIOp::create(b, loc, own, mask), zero);
  ExtentInterface extent = level.getLevel().getExtent();
  if (extent.coversDomain())
    return {extent.emitLocate(level, parent, crd), isSet};
  auto addBits = [&](Value count, Value bits) -> Value {
    return arith::AddIOp::create(b, loc, count, math::CtPopOp::create(b, loc, bits));
  };
  auto addWord = [&](OpBuilder &, Location, Value n, ValueRange count) {
    Value whole = level.load("bits", arith::AddIOp::create(b, loc, first, n));
    scf::YieldOp::create(b, loc, addBits(count[0], whole));
  };
  Value lo = extent.emitBounds(level, parent).first;
  auto before = scf::ForOp::create(b, loc, zero, number, one, lo, addWord);
  Value below = arith::SubIOp::create(b, loc, mask, one);
  return {addBits(before.getResult(0), arith::AndIOp::create(b, loc, own, below)), isSet};
}

Value BitmapCoordinateAttr::emitPresence(LevelBuilder &level, Value parent) const { return level.load("bits", parent); }
