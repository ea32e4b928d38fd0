// SPDX-License-Identifier: Apache-2.0
/// \file
/// Companion indices, whose last level links to the slots of what they are made of.
#include "lacis/Dialect/Lacis/IR/Links.h"

#include "lacis/Dialect/Lacis/IR/KindArguments.h"

using namespace mlir;
using namespace lacis;

FormatAttr lacis::withLinks(FormatAttr companion, IntegerType type) {
  MLIRContext *context = companion.getContext();
  KindArguments link(context);
  link.addWidth("pos", type);
  SmallVector<LevelAttr> levels(companion.getLevels().drop_back());
  levels.push_back(LevelAttr::getByName(context, {}, "link", "link", link));
  return FormatAttr::get(context, companion.getAxes(), levels);
}
