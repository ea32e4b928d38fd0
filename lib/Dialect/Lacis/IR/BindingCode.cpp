// SPDX-License-Identifier: Apache-2.0
/// \file
/// The arithmetic of bindings, and what of a format follows from them.
#include "lacis/Dialect/Lacis/IR/BindingCode.h"

#include "lacis/Dialect/Lacis/IR/BindingOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

//===- Sums and differences -----------------------------------------------===//

/// size - 1, the largest coordinate of a name.
static Value lastOf(OpBuilder &b, Location loc, Value size) {
  Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(size.getType(), 1));
  return arith::SubIOp::create(b, loc, size, one);
}

Value AffineBindingAttr::emitSize(OpBuilder &b, Location loc, ArrayRef<Value> sizes) const {
  return arith::AddIOp::create(b, loc, sizes[getLeft()], lastOf(b, loc, sizes[getRight()]));
}

/// Of a difference `own` is `left - right + last of right`. What follows is, but in a sum, the known axis plus something
/// that does not depend on it.
Value AffineBindingAttr::emitSolve(OpBuilder &b, Location loc, const BoundName &bound, ArrayRef<Value> known,
                                   ArrayRef<Value> sizes) const {
  bool isLeft = bound.name == getLeft();
  Value other = known[isLeft ? getRight() : getLeft()];
  if (!getMinus())
    return arith::SubIOp::create(b, loc, bound.own, other);
  Value last = lastOf(b, loc, sizes[getRight()]);
  Value distance =
      isLeft ? arith::SubIOp::create(b, loc, bound.own, last) : arith::SubIOp::create(b, loc, last, bound.own);
  return arith::AddIOp::create(b, loc, other, distance);
}

//===- Places among others ------------------------------------------------===//

bool SlotBindingAttr::isPosition() const { return true; }

std::optional<unsigned> SlotBindingAttr::getSizeName() const { return getAxis(); }

//===- A stored order -----------------------------------------------------===//

StringRef RankBindingAttr::getArray() const { return "perm"; }

std::optional<unsigned> RankBindingAttr::getPermuted() const { return getAxis(); }

std::optional<unsigned> RankBindingAttr::getSizeName() const { return getAxis(); }

Value RankBindingAttr::emitSolve(OpBuilder &b, Location loc, const BoundName &bound, ArrayRef<Value>,
                                 ArrayRef<Value>) const {
  return LookupOp::create(b, loc, b.getIndexType(), bound.tensor, bound.number, bound.own);
}

//===- A user's own -------------------------------------------------------===//

FlatSymbolRefAttr UserBindingAttr::getDefinition() const { return getSymbol(); }

Attribute UserBindingAttr::withFacts(DictionaryAttr facts) const {
  return get(getContext(), getName(), getSymbol(), getNames(), facts);
}

bool UserBindingAttr::hasCode() const { return static_cast<bool>(getFacts()); }

std::optional<unsigned> UserBindingAttr::getSizeName() const {
  auto same = getFacts() ? getFacts().getAs<IntegerAttr>("same") : IntegerAttr();
  return same ? std::optional(getNames()[same.getInt()]) : std::nullopt;
}

/// As many coordinates as its one axis has, each of which has one of its own.
std::optional<unsigned> UserBindingAttr::getPermuted() const {
  return getNames().size() == 1 ? getSizeName() : std::nullopt;
}

Value UserBindingAttr::emitSolve(OpBuilder &b, Location loc, const BoundName &bound, ArrayRef<Value>,
                                 ArrayRef<Value>) const {
  return SolveOp::create(b, loc, b.getIndexType(), bound.tensor, bound.number, bound.name, bound.own);
}

//===- Formats ------------------------------------------------------------===//

SmallVector<unsigned> lacis::followingNames(Attribute binding, ArrayRef<bool> known) {
  SmallVector<unsigned> names = cast<BindingInterface>(binding).determines(known);
  return llvm::any_of(names, [&](unsigned name) { return known[name]; }) ? SmallVector<unsigned>() : names;
}

bool lacis::isFoundOnce(FormatAttr format, ArrayRef<unsigned> axes) {
  SmallVector<bool> known(format.getNames().size());
  SmallVector<unsigned> left(known.size()); // digits that no level above has found
  for (unsigned axis : axes)
    known[axis] = true;
  for (LevelAttr level : format.getLevels())
    for (Digit digit : level.getDigits())
      ++left[digit.axis];
  SmallVector<bool> used(format.getBindings().size());
  SmallVector<bool> followed(known.size()); // levels below must have a position for a coordinate that is known
  for (LevelAttr level : format.getLevels()) {
    if (!level.getExtent().coversDomain() &&
        llvm::any_of(level.getDigits(), [&](Digit digit) { return followed[digit.axis]; }))
      return false;
    for (Digit digit : level.getDigits())
      known[digit.axis] = --left[digit.axis] == 0 || known[digit.axis];
    for (unsigned number = used.size(); number-- > 0;) {
      SmallVector<unsigned> names = followingNames(format.getBindings()[number], known);
      if (!known[format.getAxes().size() + number] || used[number] || names.empty())
        continue;
      for (unsigned name : names)
        known[name] = followed[name] = true;
      used[number] = true;
    }
  }
  return llvm::all_of(llvm::zip(used, format.getBindings()), [](auto each) {
    return std::get<0>(each) || cast<BindingInterface>(std::get<1>(each)).isPosition();
  });
}

std::string lacis::bindingArray(FormatAttr format, unsigned number) {
  StringRef array = cast<BindingInterface>(format.getBindings()[number]).getArray();
  unsigned name = format.getAxes().size() + number, first = 0;
  auto has = [&](LevelAttr level) { return llvm::any_of(level.getDigits(), [&](Digit d) { return d.axis == name; }); };
  while (first < format.getLevels().size() && !has(format.getLevels()[first]))
    ++first;
  return array.empty() ? "" : (array + Twine(first)).str();
}
