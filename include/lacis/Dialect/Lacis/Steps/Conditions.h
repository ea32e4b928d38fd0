// SPDX-License-Identifier: Apache-2.0
/// \file
/// What some steps need of a nest: asked before they are recorded.
#ifndef LACIS_DIALECT_LACIS_STEPS_CONDITIONS_H
#define LACIS_DIALECT_LACIS_STEPS_CONDITIONS_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// Why the entries below `rows` have no equal shares (`split_nnz`), or nothing.
std::string objectionToShares(LoopOp rows, LevelLoopOp entries);
/// Why `compute_at` does not write zeros in strips of the list that `rows` goes over, or nothing.
std::string objectionToListStrips(LoopOp rows);
/// The name of the last part of a sum of formats, if `apart` made that part list its rows; else empty.
llvm::StringRef listedPart(Nest &nest);
/// Can `apart` give the long rows of the one operand a nest of their own?
bool tellsLongRows(Nest &nest);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_STEPS_CONDITIONS_H
