// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a format refuses to be: axes that are not covered exactly once, levels that hang on nothing.
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

using namespace mlir;
using namespace lacis;

namespace {
struct Verifier {
  EmitError emitError;
  ArrayRef<StringAttr> axes;
  ArrayRef<Attribute> bindings;
  ArrayRef<LevelAttr> levels;
  SmallVector<StringAttr> names;

  LogicalResult verifyNames();
  LogicalResult verifyTiling(unsigned name, SmallVector<Digit> digits);
  LogicalResult verifyNeighbours(const Digit &outer, const Digit &inner);
  LogicalResult verifyCover();
  LogicalResult verifyFollower(unsigned level);
  LogicalResult verifyLink(unsigned level);
  LogicalResult verifyBatch(unsigned level);
  std::string text(unsigned level) {
    return toString(levels[level].getDigits(), names) + " : " + levels[level].getKindName();
  }
};
} // namespace

LogicalResult Verifier::verifyNames() {
  if (axes.empty())
    return emitError() << "a format needs at least one axis";
  if (levels.empty())
    return emitError() << "a format needs at least one level";
  names.assign(axes.begin(), axes.end());
  for (Attribute binding : bindings)
    names.push_back(cast<BindingInterface>(binding).getName());
  for (auto [n, name] : llvm::enumerate(names))
    if (llvm::is_contained(ArrayRef(names).take_front(n), name))
      return emitError() << "the name '" << name.getValue() << "' is given twice";
  return success();
}

/// Two digits of one name that stand next to each other, `outer` above `inner`.
LogicalResult Verifier::verifyNeighbours(const Digit &outer, const Digit &inner) {
  std::string above = toString(outer, names), below = toString(inner, names);
  if (inner.mod == 0 || outer.div < inner.div * inner.mod)
    return emitError() << "axis '" << names[outer.axis].getValue() << "' is used twice: '" << above << "' and '" << below
                       << "' overlap";
  if (outer.div > inner.div * inner.mod)
    return emitError() << "the digits of axis '" << names[outer.axis].getValue() << "' leave a gap between '" << above
                       << "' and '" << below << "': add a level over '"
                       << toString(Digit{outer.axis, inner.div * inner.mod, outer.div / (inner.div * inner.mod)}, names)
                       << "'";
  return success();
}

LogicalResult Verifier::verifyTiling(unsigned name, SmallVector<Digit> digits) {
  auto span = [](const Digit &digit) {
    return digit.mod ? digit.div * digit.mod : std::numeric_limits<int64_t>::max();
  };
  llvm::sort(digits, [&](const Digit &a, const Digit &b) {
    return std::make_pair(a.div, span(a)) > std::make_pair(b.div, span(b));
  });
  const Digit &first = digits.front(), &last = digits.back();
  if (first.mod != 0)
    return emitError() << "the digits of axis '" << names[name].getValue() << "' end at " << span(first)
                       << ": add a level over '" << toString(Digit{name, span(first), 0}, names) << "'";
  for (size_t n = 1; n < digits.size(); ++n)
    if (failed(verifyNeighbours(digits[n - 1], digits[n])))
      return failure();
  if (last.div != 1)
    return emitError() << "the digits of axis '" << names[name].getValue() << "' leave a gap below '"
                       << toString(last, names) << "': add a level over '" << toString(Digit{name, 1, last.div}, names)
                       << "'";
  return success();
}

/// Each name is tiled by its digits, or follows from a binding.
LogicalResult Verifier::verifyCover() {
  SmallVector<SmallVector<Digit>> digits(names.size());
  SmallVector<bool> known(names.size());
  for (LevelAttr level : levels)
    for (const Digit &digit : level.getDigits()) {
      assert(digit.axis < names.size() && "digits are made of the names of the format");
      digits[digit.axis].push_back(digit);
      known[digit.axis] = true;
    }
  for (auto [name, uses] : llvm::enumerate(digits))
    if (!uses.empty() && failed(verifyTiling(name, uses)))
      return failure();
  for (size_t n = names.size(); n-- > axes.size();) {
    auto binding = cast<BindingInterface>(bindings[n - axes.size()]);
    if (!known[n])
      return emitError() << "binding '" << names[n].getValue() << "' is not used by any level";
    for (unsigned axis : binding.determines(known)) {
      if (known[axis])
        return emitError() << "axis '" << names[axis].getValue() << "' is used twice: by a level and through '"
                           << names[n].getValue() << "'";
      known[axis] = true;
    }
  }
  for (auto [axis, name] : llvm::enumerate(axes))
    if (!known[axis])
      return emitError() << "axis '" << name.getValue() << "' is missing: add a level, for instance '"
                         << name.getValue() << " : dense'";
  return success();
}

/// `one` position under each parent: some parent must exist, and may repeat or be padded.
LogicalResult Verifier::verifyFollower(unsigned level) {
  if (level == 0)
    return emitError() << "'" << text(level) << "' has no level above it to follow: put one before it";
  if (levels[level].isPadded())
    return success();
  unsigned parent = level - 1;
  while (parent > 0 && levels[parent].getExtent().followsParent() && levels[parent].getCoordinate().isUnique())
    --parent;
  if (!levels[parent].getCoordinate().isUnique())
    return success();
  return emitError() << "'" << text(level) << "' follows '" << text(parent)
                     << "', whose coordinates are unique: write 'pad=true' here or 'unique=false' there";
}

LogicalResult Verifier::verifyLink(unsigned level) {
  if (level == 0)
    return emitError() << "'link' has no level above it: put it after the levels that are walked";
  for (unsigned n = level + 1; n < levels.size(); ++n)
    if (!levels[n].isStaticDense())
      return emitError() << "'link' must come last, before the dense levels of the stored block only";
  return success();
}

/// A batch is of values alone: whole axes, one a level, above all levels that have positions.
LogicalResult Verifier::verifyBatch(unsigned level) {
  auto isWhole = [&](Digit digit) { return digit.axis < axes.size() && digit.div == 1 && digit.mod == 0; };
  if (level > 0 && !levels[level - 1].getExtent().sharesPattern())
    return emitError() << "'" << text(level)
                       << "' must come first: the levels below it are the pattern that its values share";
  if (!llvm::all_of(levels[level].getDigits(), isWhole))
    return emitError() << "'" << text(level)
                       << "' is of whole axes, neither of their blocks nor of what is bound to them";
  if (levels[level].getDigits().size() != 1)
    return emitError() << "'" << text(level) << "' is of several axes: write a level 'batch' for each of them";
  if (level + 1 == levels.size())
    return emitError() << "'" << text(level) << "' has no level below it, so its values share no pattern";
  return success();
}

LogicalResult FormatAttr::verify(EmitError emitError, ArrayRef<StringAttr> axes, ArrayRef<Attribute> bindings,
                                 ArrayRef<LevelAttr> levels, bool multiset, Attribute layout) {
  Verifier verifier{emitError, axes, bindings, levels, {}};
  if (failed(verifier.verifyNames()) || failed(verifier.verifyCover()))
    return failure();
  for (unsigned n = 0; n < levels.size(); ++n) {
    ExtentInterface extent = levels[n].getExtent();
    if (extent.isLink() && failed(verifier.verifyLink(n)))
      return failure();
    if (extent.sharesPattern() && failed(verifier.verifyBatch(n)))
      return failure();
    if (extent.followsParent() && failed(verifier.verifyFollower(n)))
      return failure();
  }
  return success();
}

LogicalResult FormatAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType, EmitError emitError) const {
  if (shape.size() == getAxes().size())
    return success();
  return emitError() << "the format has " << getAxes().size() << " axes, the tensor has rank " << shape.size();
}
