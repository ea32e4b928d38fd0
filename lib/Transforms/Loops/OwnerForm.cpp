// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks the forms in which the levels of an operand own the elements of an output.
///
/// A level with digits of the output is *located* where it has a position for every coordinate. Leading levels that store
/// each coordinate once *list* their rows: one position, one owner. A binding that has the output's rows in another order
/// *permutes* them: each is there once. Where the leading levels are located and levels below find digits of the
/// output, these are *pushed*: few to a tile that the owner has to itself, others to the output. Levels that name a row for each of their positions
/// *share*: units take equal shares of these. What is left is walked by
/// the companion index, whose leading levels are dense in the output's axes. (SparseTIR, TACO and Finch have the first two;
/// see docs/steps/own.md.)
#include "OwnerForm.h"
#include "lacis/Dialect/Lacis/IR/BindingCode.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lacis;

/// How many digits of the level are of these axes.
static size_t digitsOf(LevelAttr level, ArrayRef<unsigned> axes) {
  return llvm::count_if(level.getDigits(), [&](Digit d) { return llvm::is_contained(axes, d.axis); });
}

static bool hasOnly(LevelAttr level, ArrayRef<unsigned> axes) {
  return !level.getDigits().empty() && digitsOf(level, axes) == level.getDigits().size();
}

static bool isLocated(LevelAttr level, ArrayRef<unsigned> axes) {
  return digitsOf(level, axes) == 0 || (hasOnly(level, axes) && level.getExtent().coversDomain());
}

bool lacis::isLocated(FormatAttr format, ArrayRef<unsigned> axes) {
  return format.hasCode() && isFoundOnce(format, axes) &&
         llvm::all_of(format.getLevels(), [&](LevelAttr level) { return ::isLocated(level, axes); });
}

bool lacis::nestsDigits(FormatAttr format) {
  SmallVector<Digit> digits;
  for (LevelAttr level : format.getLevels())
    llvm::append_range(digits, level.getDigits());
  return llvm::all_of(digits, [&](Digit inner) {
    return llvm::all_of(digits, [&](Digit outer) {
      return inner.axis != outer.axis || outer.div <= inner.div || (inner.mod && inner.div * inner.mod <= outer.div);
    });
  });
}

static bool listsOnce(LevelAttr level) {
  CoordinateInterface coordinate = level.getCoordinate();
  return coordinate.isStored() && coordinate.isUnique() && level.isRandomAccess();
}

unsigned lacis::listedLevels(FormatAttr format, ArrayRef<unsigned> axes) {
  ArrayRef<LevelAttr> levels = format.getPatternLevels();
  return levels.take_while([&](LevelAttr level) { return hasOnly(level, axes) && listsOnce(level); }).size();
}

/// The names of the level's digits' axes: `(i, j)`, or `i`.
static std::string namesOf(FormatAttr format, LevelAttr level) {
  std::string names;
  SmallVector<StringAttr> all = format.getNames();
  for (Digit digit : level.getDigits())
    names += (names.empty() ? "" : ", ") + all[digit.axis].str();
  return level.getDigits().size() == 1 ? names : "(" + names + ")";
}

/// The first level of the pattern, in words.
static std::string firstLevel(FormatAttr format) { return "level " + std::to_string(format.getNumBatchLevels()); }

/// What follows from bindings in another order, or from levels without loops, is found by the companion alone.
static constexpr StringLiteral kNoLoops = "its levels have no loops of their own";

static std::string objectionToList(FormatAttr format, ArrayRef<unsigned> axes) {
  if (!format.hasCode() || !format.getBindings().empty())
    return kNoLoops.str();
  LevelAttr first = format.getPatternLevels()[0];
  std::string names = namesOf(format, first), level0 = firstLevel(format);
  if (digitsOf(first, axes) != first.getDigits().size())
    return level0 + " is of " + names + ", and the output does not have all of that";
  if (!first.getCoordinate().isStored() || !first.isRandomAccess())
    return level0 + " stores no list of " + names;
  if (!first.getCoordinate().isUnique())
    return level0 + " may list one " + names + " more than once";
  for (LevelAttr level : format.getPatternLevels().drop_front(listedLevels(format, axes)))
    if (!::isLocated(level, axes))
      return "a level below finds " + namesOf(format, level) + " of the output too";
  return "";
}

/// One coordinate for each position, in ascending order.
static bool namesInOrder(LevelAttr level) {
  CoordinateInterface coordinate = level.getCoordinate();
  return coordinate.isStored() && coordinate.isOrdered() && coordinate.canSeek() && !coordinate.isPadded();
}

SmallVector<Digit> lacis::sharedDigits(FormatAttr format, ArrayRef<unsigned> axes) {
  SmallVector<Digit> row;
  for (auto [number, level] : llvm::enumerate(format.getPatternLevels())) {
    bool isListed = number == 0 ? level.isRandomAccess() : level.getExtent().followsParent();
    if (!isListed || !namesInOrder(level))
      return row;
    for (Digit digit : level.getDigits()) {
      if (!llvm::is_contained(axes, digit.axis))
        return row;
      row.push_back(digit);
    }
  }
  return row;
}

/// Where a nest goes from position to position, an owner has an element from one copy of the values.
static std::string objectionToBatch(FormatAttr format, ArrayRef<unsigned> axes) {
  for (LevelAttr level : format.getLevels().take_front(format.getNumBatchLevels()))
    if (!hasOnly(level, axes))
      return "its values are added up over " + namesOf(format, level) + ", around the positions of the pattern";
  return "";
}

static std::string objectionToShare(FormatAttr format, ArrayRef<unsigned> axes) {
  if (isLocated(format, axes))
    return "its levels are located, and no position is shared";
  if (!format.hasCode())
    return kNoLoops.str();
  if (std::string objection = objectionToBatch(format, axes); !objection.empty())
    return objection;
  LevelAttr first = format.getPatternLevels()[0];
  std::string names = namesOf(format, first), level0 = firstLevel(format);
  if (!namesInOrder(first) || !first.isRandomAccess())
    return level0 + " does not name " + names + " for each position, in ascending order";
  SmallVector<Digit> row = sharedDigits(format, axes);
  if (row.empty())
    return level0 + " is of " + names + ", and the output does not have the first of that";
  if (hasOnly(first, axes) && first.getCoordinate().isUnique())
    return level0 + " lists each " + names + " once";
  for (LevelAttr level : format.getLevels())
    for (Digit digit : level.getDigits())
      if (llvm::is_contained(axes, digit.axis) && !llvm::is_contained(row, digit) && !::isLocated(level, axes))
        return "a level below finds " + namesOf(format, level) + " of the output too";
  return "";
}

/// Elements of a tile that stay in the first-level cache with 32 lanes of 4 bytes each.
static constexpr int64_t kMostPushed = 256;

unsigned lacis::ownerLevels(FormatAttr format, ArrayRef<unsigned> axes) {
  auto owns = [&](LevelAttr level) { return hasOnly(level, axes) && level.getExtent().coversDomain(); };
  return format.getLevels().take_while(owns).size();
}

SmallVector<Digit> lacis::pushedDigits(FormatAttr format, ArrayRef<unsigned> axes) {
  SmallVector<Digit> pushed;
  for (LevelAttr level : format.getLevels().drop_front(ownerLevels(format, axes)))
    llvm::copy_if(level.getDigits(), std::back_inserter(pushed),
                  [&](Digit digit) { return llvm::is_contained(axes, digit.axis); });
  return pushed;
}

bool lacis::pushesToTile(FormatAttr format, ArrayRef<unsigned> axes) {
  int64_t elements = 1;
  for (Digit digit : pushedDigits(format, axes))
    if (digit.mod == 0 || llvm::MulOverflow(elements, digit.mod, elements))
      return false;
  return elements <= kMostPushed;
}

static std::string objectionToPush(FormatAttr format, ArrayRef<unsigned> axes) {
  if (isLocated(format, axes))
    return "its levels are located, and push nothing";
  if (!format.hasCode() || !format.getBindings().empty())
    return kNoLoops.str();
  LevelAttr first = format.getPatternLevels()[0];
  bool isLoop = first.getExtent().coversDomain() || first.isRandomAccess();
  if (ownerLevels(format, axes) <= format.getNumBatchLevels() && !isLoop)
    return firstLevel(format) + " is walked in order, so that no loop has its positions";
  return objectionToBatch(format, axes);
}

std::optional<unsigned> lacis::permutedAxis(FormatAttr format, ArrayRef<unsigned> axes, unsigned binding) {
  std::optional<unsigned> axis = cast<BindingInterface>(format.getBindings()[binding]).getPermuted();
  return axis && llvm::is_contained(axes, *axis) ? axis : std::nullopt;
}

/// The bindings that have an axis of the output in another order stand for it among what an owner has.
static std::string objectionToPermute(FormatAttr format, ArrayRef<unsigned> axes) {
  SmallVector<unsigned> names(axes);
  bool permutes = false;
  for (unsigned number = 0; number < format.getBindings().size(); ++number) {
    if (!permutedAxis(format, axes, number)) {
      if (!cast<BindingInterface>(format.getBindings()[number]).isPosition())
        return kNoLoops.str();
      continue;
    }
    names.push_back(format.getAxes().size() + number);
    permutes = true;
  }
  if (!permutes)
    return "no binding has an axis of the output in another order";
  if (!format.hasCode())
    return kNoLoops.str();
  for (LevelAttr level : format.getLevels())
    if (!::isLocated(level, names))
      return "a level finds " + namesOf(format, level) + " of the output";
  return "";
}

std::string lacis::objectionTo(StringRef form, FormatAttr format, ArrayRef<unsigned> axes) {
  return form == "list"      ? objectionToList(format, axes)
         : form == "permute" ? objectionToPermute(format, axes)
         : form == "push"    ? objectionToPush(format, axes)
         : form == "share"   ? objectionToShare(format, axes)
                             : "";
}

/// A list, or why not.
static OwnerForm listOr(FormatAttr format, ArrayRef<unsigned> axes, RowFacts rows) {
  std::string names = namesOf(format, format.getPatternLevels()[0]), level0 = firstLevel(format);
  OwnerForm list{"list", level0 + " lists each " + names + " once"};
  if (!format.companion(axes)) // all that the pattern has is in the list
    return list;
  if (format.getNumTileLevels() != 0)
    return {"companion", "tiles are made of blocks in the order of all " + names};
  if (rows.uneven)
    return {"companion", "some " + names + " have far more entries than most, and it has equal shares"};
  if (rows.filled)
    return {"companion", level0 + " lists most " + names};
  return list;
}

/// Equal shares, or why not. Where rows have entries, an index tells how many: their sums run on in registers, several at
/// once (bench/owner_forms.py).
static OwnerForm shareOr(FormatAttr format, RowFacts rows) {
  std::string names = namesOf(format, format.getPatternLevels()[0]);
  if (format.getNumTileLevels() != 0)
    return {"companion", "tiles are made of blocks in the order of all " + names};
  if (!rows.hypersparse)
    return {"companion", "shares of entries are for a CPU where most " + names + " have none"};
  return {"share", "most " + names + " have no entry"};
}

/// Sums in memory, or why not: each entry loads and stores an element. Where most have no entry, an index of all of them
/// is larger than the operand; columns of an output take long in it, as threads share no rows (bench/owner_forms.py).
static OwnerForm pushOr(FormatAttr format, ArrayRef<unsigned> axes, RowFacts rows) {
  if (pushesToTile(format, axes))
    return {"companion", "a sum in registers is faster than a tile in memory"};
  if (format.getNumTileLevels() != 0 || !rows.hypersparse || !rows.alone)
    return {"companion", "a sum in registers is faster than one in the output"};
  std::string names;
  for (Digit digit : pushedDigits(format, axes))
    names += (names.empty() ? "" : ", ") + format.getNames()[digit.axis].str();
  return {"push", "most " + names + " have no entry"};
}

OwnerForm lacis::bestForm(FormatAttr format, ArrayRef<unsigned> axes, RowFacts rows) {
  if (isLocated(format, axes))
    return {"locate", ""};
  if (objectionToPermute(format, axes).empty())
    return {"permute", "a binding has its rows in another order"};
  std::string toList = objectionToList(format, axes);
  if (toList.empty())
    return listOr(format, axes, rows);
  if (objectionToShare(format, axes).empty())
    return shareOr(format, rows);
  return objectionToPush(format, axes).empty() ? pushOr(format, axes, rows) : OwnerForm{"companion", toList};
}
