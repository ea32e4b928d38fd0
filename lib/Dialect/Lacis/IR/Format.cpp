// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a format answers: its names, its stored block, its companion.
#include "lacis/Dialect/Lacis/IR/BindingCode.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringAttr> FormatAttr::getNames() const {
  SmallVector<StringAttr> names(getAxes());
  for (Attribute binding : getBindings())
    names.push_back(cast<BindingInterface>(binding).getName());
  return names;
}

bool FormatAttr::hasCode() const {
  size_t rank = getAxes().size();
  auto bindingOf = [&](unsigned name) { return cast<BindingInterface>(getBindings()[name - rank]); };
  auto isOfData = [&](unsigned name) { // only who computes it from data knows how many coordinates it has
    return name >= rank && bindingOf(name).getDefinition() && !bindingOf(name).getSizeName();
  };
  auto isSized = [&](Digit d) { // a launch knows the sizes of axes, before it
    return d.mod || d.axis < rank || bindingOf(d.axis).getSizeName();
  };
  for (Attribute attr : getBindings())
    if (auto binding = cast<BindingInterface>(attr); !binding.hasCode() || llvm::any_of(binding.getOperands(), isOfData))
      return false;
  auto isLoop = [&](LevelAttr level) {
    bool isListed = !level.getExtent().coversDomain() &&
                    (level.getCoordinate().isStored() ||
                     llvm::none_of(level.getDigits(), [&](Digit d) { return !d.mod && isOfData(d.axis); }));
    return level.hasCode() && (isListed || llvm::all_of(level.getDigits(), isSized));
  };
  return llvm::all_of(getLevels(), isLoop);
}

unsigned FormatAttr::getNumBatchLevels() const {
  return getLevels().take_while([](LevelAttr level) { return level.getExtent().sharesPattern(); }).size();
}

/// What a binding says of an axis counts single coordinates, so that nothing is stored in blocks.
unsigned FormatAttr::getNumTileLevels() const {
  if (!getBindings().empty())
    return 0;
  ArrayRef<LevelAttr> levels = getLevels();
  unsigned count = 0;
  while (count < levels.size() && levels[levels.size() - 1 - count].isStaticDense())
    ++count;
  return count;
}

IntegerType FormatAttr::getIndexType() const {
  for (LevelAttr level : getLevels())
    for (const BufferSpec &buffer : level.getBuffers())
      if (buffer.elementType.isInteger(64))
        return cast<IntegerType>(buffer.elementType);
  return IntegerType::get(getContext(), 32);
}

/// The finest digit of each axis that the levels name, unbounded; `div == 0` for an axis that they do not name.
static SmallVector<Digit> finestDigits(ArrayRef<LevelAttr> levels, unsigned numAxes) {
  SmallVector<Digit> finest(numAxes);
  for (auto [axis, digit] : llvm::enumerate(finest))
    digit = {static_cast<unsigned>(axis), 0, 0};
  for (LevelAttr level : levels)
    for (const Digit &digit : level.getDigits())
      if (digit.axis < numAxes)
        if (int64_t &div = finest[digit.axis].div; div == 0 || digit.div < div)
          div = digit.div;
  return finest;
}

/// The width in which a companion stores coordinates: that in which the format does or would, so that the two can share
/// an array.
static IntegerType coordinateType(FormatAttr format, const Digit &digit) {
  IntegerType index = format.getIndexType();
  auto says = [&](LevelAttr level) {
    return level.getDigits() == ArrayRef(digit) && level.getCoordinate().getListedType();
  };
  const auto *own = llvm::find_if(format.getPatternLevels(), says);
  if (index.isInteger(64) || own == format.getPatternLevels().end())
    return index;
  return own->getCoordinate().getListedType();
}

FormatAttr FormatAttr::companion(ArrayRef<unsigned> leadingAxes) const {
  ArrayRef<LevelAttr> batch = getLevels().take_front(getNumBatchLevels());
  SmallVector<Digit> finest = finestDigits(getPatternLevels().drop_back(getNumTileLevels()), getAxes().size());
  if (!getBindings().empty())
    for (Digit &digit : finest)
      digit.div = std::max<int64_t>(digit.div, 1); // an axis without levels follows from a binding
  for (LevelAttr level : batch)
    for (Digit digit : level.getDigits())
      finest[digit.axis].div = 0; // an axis of values alone
  SmallVector<LevelAttr> levels(batch);
  SmallVector<Digit> rest;
  llvm::SmallBitVector leads(getAxes().size());
  for (unsigned axis : leadingAxes) {
    if (finest[axis].div != 0 && !leads.test(axis))
      levels.push_back(
          LevelAttr::getByName(getContext(), finest[axis], "full", "implicit", KindArguments(getContext())));
    leads.set(axis);
  }
  for (const Digit &digit : finest)
    if (digit.div != 0 && !leads.test(digit.axis))
      rest.push_back(digit);
  if (rest.empty())
    return {};
  KindArguments arguments(getContext());
  arguments.addFlag("unique", false, true);
  arguments.addWidth("pos", getIndexType());
  arguments.addWidth("crd", coordinateType(*this, rest.front()));
  levels.push_back(LevelAttr::getByName(getContext(), rest.front(), "var", "crd", arguments));
  for (const Digit &digit : llvm::drop_begin(rest)) {
    KindArguments stored(getContext());
    stored.addWidth("crd", coordinateType(*this, digit));
    levels.push_back(LevelAttr::getByName(getContext(), digit, "one", "crd", stored));
  }
  KindArguments link(getContext());
  link.addWidth("pos", getIndexType());
  levels.push_back(LevelAttr::getByName(getContext(), {}, "link", "link", link));
  llvm::append_range(levels, getLevels().take_back(getNumTileLevels()));
  return FormatAttr::get(getContext(), getAxes(), levels);
}
