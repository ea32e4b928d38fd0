// SPDX-License-Identifier: Apache-2.0
/// \file
/// The arithmetic of bindings, and what of a format follows from them.
#include "lacis/Dialect/Lacis/IR/BindingCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

BindingCode::~BindingCode() = default;

/// size - 1, the largest coordinate of a name.
static Value lastOf(OpBuilder &b, Location loc, Value size) {
  Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(size.getType(), 1));
  return arith::SubIOp::create(b, loc, size, one);
}

namespace {
/// Of a difference `own` is `left - right + last of right`. What follows is, but in a sum, the known axis plus something
/// that does not depend on it.
struct AffineCode : BindingCode {
  explicit AffineCode(AffineBindingAttr binding) : binding(binding) {}

  Value emitSize(OpBuilder &b, Location loc, Values sizes) const override {
    return arith::AddIOp::create(b, loc, sizes[binding.getLeft()], lastOf(b, loc, sizes[binding.getRight()]));
  }

  Value emitSolve(OpBuilder &b, Location loc, unsigned name, Value own, Values known, Values sizes) const override {
    bool isLeft = name == binding.getLeft();
    Value other = known[isLeft ? binding.getRight() : binding.getLeft()];
    if (!binding.getMinus())
      return arith::SubIOp::create(b, loc, own, other);
    Value last = lastOf(b, loc, sizes[binding.getRight()]);
    Value distance = isLeft ? arith::SubIOp::create(b, loc, own, last) : arith::SubIOp::create(b, loc, last, own);
    return arith::AddIOp::create(b, loc, other, distance);
  }

  AffineBindingAttr binding;
};

/// As many coordinates as an axis has.
struct AxisCode : BindingCode {
  explicit AxisCode(unsigned axis) : axis(axis) {}
  std::optional<unsigned> getSizeName() const override { return axis; }
  Value emitSize(OpBuilder &, Location, Values sizes) const override { return sizes[axis]; }

  unsigned axis;
};

struct SlotCode : AxisCode {
  using AxisCode::AxisCode;
  bool isPosition() const override { return true; }
};

struct RankCode : AxisCode {
  using AxisCode::AxisCode;
  StringRef getArray() const override { return "perm"; }
};
} // namespace

std::unique_ptr<BindingCode> lacis::codeOf(Attribute binding) {
  using Code = std::unique_ptr<BindingCode>;
  return llvm::TypeSwitch<Attribute, Code>(binding)
      .Case([](AffineBindingAttr affine) { return std::make_unique<AffineCode>(affine); })
      .Case([](SlotBindingAttr slot) { return std::make_unique<SlotCode>(slot.getAxis()); })
      .Case([](RankBindingAttr rank) { return std::make_unique<RankCode>(rank.getAxis()); })
      .Default([](Attribute) { return Code(); });
}

std::optional<unsigned> lacis::determinedName(Attribute binding, ArrayRef<bool> known) {
  SmallVector<unsigned> names = cast<BindingInterface>(binding).determines(known);
  return names.size() == 1 ? std::optional(names[0]) : std::nullopt;
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
      std::optional<unsigned> name = determinedName(format.getBindings()[number], known);
      if (!known[format.getAxes().size() + number] || used[number] || !name || known[*name])
        continue;
      known[*name] = used[number] = followed[*name] = true;
    }
  }
  return llvm::all_of(llvm::zip(used, format.getBindings()), [](auto each) {
    return std::get<0>(each) || codeOf(std::get<1>(each))->isPosition();
  });
}

std::string lacis::bindingArray(FormatAttr format, unsigned number) {
  std::unique_ptr<BindingCode> code = codeOf(format.getBindings()[number]);
  StringRef array = code ? code->getArray() : "";
  unsigned name = format.getAxes().size() + number, first = 0;
  auto has = [&](LevelAttr level) { return llvm::any_of(level.getDigits(), [&](Digit d) { return d.axis == name; }); };
  while (first < format.getLevels().size() && !has(format.getLevels()[first]))
    ++first;
  return array.empty() ? "" : (array + Twine(first)).str();
}
