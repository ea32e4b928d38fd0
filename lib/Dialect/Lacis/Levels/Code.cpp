// SPDX-License-Identifier: Apache-2.0
/// \file
/// Code coordinate: which n of m coordinates a group has, in the fewest of 1, 2, 4 or 8 bits an entry.
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;
using arith::CmpIPredicate;

namespace {
/// n of m coordinates.
struct Group {
  int64_t n, m;

  int64_t codes() const { return n == 1 ? m + 1 : m; } // one of m needs a code for none
  int64_t bits() const { return codes() <= 2 ? 1 : codes() <= 4 ? 2 : codes() <= 16 ? 4 : 8; }
};
} // namespace

static constexpr int64_t kMostCodes = 256;

static Group groupOf(Attribute extent, ArrayRef<Digit> digits) {
  int64_t m = 1;
  for (const Digit &digit : digits)
    m *= std::min(digit.mod, kMostCodes + 1);
  return {cast<ExtentInterface>(extent).getTrip().value_or(0), std::min(m, kMostCodes + 1)};
}

Attribute CodeCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void CodeCoordinateAttr::printArguments(KindArguments &) const {}

LogicalResult CodeCoordinateAttr::verifyUnder(Attribute extent, ArrayRef<Digit> digits, EmitError emitError) const {
  auto above = cast<ExtentInterface>(extent);
  if (!above.getTrip() || !above.hasCapacity())
    return emitError() << "coordinate 'code' needs a fixed number of entries: use 'structured<n>'";
  if (llvm::any_of(digits, [](const Digit &digit) { return digit.mod == 0; }))
    return emitError() << "coordinate 'code' needs groups of a known size: write 'mod m' behind the axis";
  Group group = groupOf(extent, digits);
  if (group.codes() > kMostCodes)
    return emitError() << "a group has " << kMostCodes << " codes at the most: block the axis";
  if (group.n > group.m)
    return emitError() << "a group of " << group.m << " coordinates does not hold " << group.n << " entries";
  return success();
}

SmallVector<BufferSpec> CodeCoordinateAttr::getBuffers() const {
  return {{"code", IntegerType::get(getContext(), 8), BufferSpec::Unknown, /*isUnsigned=*/true}};
}

bool CodeCoordinateAttr::hasCode() const { return true; }

bool CodeCoordinateAttr::isPadded() const { return true; }

/// The code of a position of the group that begins at `lo`: some bits of a byte that has those of several positions. Where
/// a byte has those of whole groups, all of a group say so, and share one load.
static Value emitCode(LevelBuilder &level, const Group &group, Value lo, Value pos) {
  OpBuilder &b = level.b;
  Location loc = level.loc;
  int64_t bits = group.bits(), each = 8 / bits;
  Value first = each % group.n == 0 ? lo : pos, count = level.constant(each);
  Value byte = level.load("code", arith::DivUIOp::create(b, loc, first, count));
  Value place = arith::RemUIOp::create(b, loc, pos, count);
  Value shifted = arith::ShRUIOp::create(b, loc, byte, arith::MulIOp::create(b, loc, place, level.constant(bits)));
  return arith::AndIOp::create(b, loc, shifted, level.constant((int64_t(1) << bits) - 1));
}

Coordinate CodeCoordinateAttr::emitCoordinate(LevelBuilder &level, Value lo, Value pos) const {
  OpBuilder &b = level.b;
  Location loc = level.loc;
  LevelAttr attr = level.getLevel();
  Group group = groupOf(attr.getExtent(), attr.getDigits());
  Value code = emitCode(level, group, lo, pos), one = level.constant(1);
  if (group.n == 1) {
    Value valid = arith::CmpIOp::create(b, loc, CmpIPredicate::slt, code, level.constant(group.m));
    return {arith::MinSIOp::create(b, loc, code, level.constant(group.m - 1)), valid};
  }
  Value isFirst = arith::CmpIOp::create(b, loc, CmpIPredicate::eq, pos, lo);
  Value next = arith::AddIOp::create(b, loc, pos, one), last = arith::SubIOp::create(b, loc, pos, one);
  Value other = emitCode(level, group, lo, arith::SelectOp::create(b, loc, isFirst, next, last));
  Value notBelow = arith::CmpIOp::create(b, loc, CmpIPredicate::sge, other, code);
  Value above = arith::CmpIOp::create(b, loc, CmpIPredicate::sgt, code, other);
  return {code, arith::SelectOp::create(b, loc, isFirst, notBelow, above)};
}
