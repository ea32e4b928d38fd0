// SPDX-License-Identifier: Apache-2.0
/// \file
/// Formats whose first level lists the rows of a matrix, each once.
#include "lacis/Dialect/Lacis/IR/RowLists.h"

#include "lacis/Dialect/Lacis/IR/KindArguments.h"

using namespace mlir;
using namespace lacis;

static bool isWholeRow(LevelAttr level) {
  return level.getDigits().size() == 1 && level.getDigits()[0].div == 1 && level.getDigits()[0].mod == 0;
}

bool lacis::listsRows(FormatAttr format) {
  LevelAttr first = format.getLevels()[0];
  return isWholeRow(first) && format.getLevels().size() > 1 && first.getCoordinate().isStored() &&
         first.getCoordinate().isUnique() && !first.getCoordinate().isPadded() &&
         !format.getLevels()[1].getExtent().followsParent();
}

FormatAttr lacis::listOf(FormatAttr format, unsigned axis) {
  if (format.getNumBatchLevels() != 0)
    return {}; // the rows lie below levels that are walked first
  FormatAttr rows = format.companion({axis});
  if (!rows || !rows.getLevels()[0].getExtent().coversDomain())
    return {};
  MLIRContext *context = format.getContext();
  KindArguments arguments(context);
  arguments.addWidth("pos", format.getIndexType());
  arguments.addWidth("crd", format.getIndexType());
  SmallVector<LevelAttr> levels(rows.getLevels());
  levels[0] = LevelAttr::getByName(context, levels[0].getDigits()[0], "var", "crd", arguments);
  FormatAttr list = FormatAttr::get(context, format.getAxes(), levels);
  return listsRows(list) ? list : FormatAttr();
}

FormatAttr lacis::rowsOf(FormatAttr format, unsigned axis) {
  FormatAttr rows = format.companion({axis});
  if (!rows || rows.getLevels().size() < 2 || !isWholeRow(rows.getLevels()[0]))
    return {};
  LevelAttr first = rows.getLevels()[0], entries = rows.getLevels()[1];
  bool tells = !entries.getExtent().followsParent() && !entries.getExtent().coversDomain() &&
               !entries.getCoordinate().isPadded();
  return first.getDigits()[0].axis == axis && first.getExtent().coversDomain() && tells ? rows : FormatAttr();
}

bool lacis::hasWholeRows(FormatAttr format, unsigned axis) {
  unsigned count = 0;
  for (LevelAttr level : format.getLevels())
    for (Digit digit : level.getDigits())
      if (digit.axis == axis) {
        ++count;
        if (digit.div != 1 || digit.mod != 0)
          return false;
      }
  return count == 1;
}

/// The tests of a rule that say which digits of other axes its entries have; nothing where it looks at more than that and
/// rows.
static std::optional<SmallVector<Attribute>> stripOf(Attribute predicate, unsigned axis) {
  SmallVector<Attribute> strip;
  for (CompareAttr test : cast<ArrayAttr>(predicate).getAsRange<CompareAttr>()) {
    bool ofRow = llvm::all_of(test.getDigits(), [&](Digit digit) { return digit.axis == axis; });
    if (test.isFits() || test.getTerm().getValue() == "slot" || (!ofRow && test.getTerm().getValue() == "nnz"))
      return std::nullopt;
    if (!ofRow)
      strip.push_back(test);
  }
  return strip;
}

SmallVector<unsigned> lacis::rowGroups(SumAttr sum, unsigned axis) {
  SmallVector<unsigned> groups;
  SmallVector<Attribute> before;
  for (Attribute predicate : sum.getPredicates()) {
    std::optional<SmallVector<Attribute>> strip = stripOf(predicate, axis);
    if (!strip)
      return {};
    groups.push_back(groups.empty() ? 0 : groups.back() + (*strip != before));
    before = *strip;
  }
  return groups;
}

std::optional<int64_t> lacis::longestRow(SumAttr sum, StringRef part, unsigned axis) {
  std::optional<int64_t> longest;
  auto atMost = [&](int64_t count) { longest = std::min(longest.value_or(count), count); };
  for (auto [name, predicate] : llvm::zip(sum.getNames(), sum.getPredicates())) {
    bool isPart = name.getValue() == part;
    auto rule = cast<ArrayAttr>(predicate);
    for (CompareAttr test : rule.getAsRange<CompareAttr>()) {
      bool counts = test.getTerm().getValue() == "nnz" && test.getDigits().size() == 1 &&
                    test.getDigits()[0] == Digit{axis, 1, 0};
      StringRef comparison = test.getComparison().getValue();
      if (counts && isPart && comparison != "ge")
        atMost(test.getValue() - (comparison == "lt" ? 1 : 0));
      if (counts && !isPart && comparison == "ge" && rule.size() == 1)
        atMost(test.getValue() - 1); // longer rows went there
    }
    if (isPart)
      break;
  }
  return longest;
}
