// SPDX-License-Identifier: Apache-2.0
/// \file
/// Formats whose first level lists the rows of a matrix, each once, and sums that keep rows whole.
#ifndef LACIS_DIALECT_LACIS_IR_ROWLISTS_H
#define LACIS_DIALECT_LACIS_IR_ROWLISTS_H

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

namespace lacis {

/// The format lists each of its rows once, in its first level.
bool listsRows(FormatAttr format);
/// The companion of a format that lists the coordinates of an axis, or null.
FormatAttr listOf(FormatAttr format, unsigned axis);
/// The companion that has all coordinates of an axis, and under each nothing but its entries, or null.
FormatAttr rowsOf(FormatAttr format, unsigned axis);
/// One level has the axis, undivided.
bool hasWholeRows(FormatAttr format, unsigned axis);
/// For each part the number of its group: neighbours whose rules name the same digits of other axes. Of those entries the
/// ones with one coordinate along `axis` always go to one part of the group together. It follows from the rules alone: beside
/// such digits they look at nothing but that axis, and counts under it. Empty where a rule looks at more.
llvm::SmallVector<unsigned> rowGroups(SumAttr sum, unsigned axis);
/// The most entries of a row that the rule of a part, and those before it, let through, where there is such a limit.
std::optional<int64_t> longestRow(SumAttr sum, llvm::StringRef part, unsigned axis);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_ROWLISTS_H
