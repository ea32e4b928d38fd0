// SPDX-License-Identifier: Apache-2.0
/// \file
/// The boxes of operands that the products of a nest take.
#ifndef LACIS_LIB_TRANSFORMS_TILES_FINDBOXES_H
#define LACIS_LIB_TRANSFORMS_TILES_FINDBOXES_H

#include "StatementRounds.h"

namespace lacis {

/// Finds them; fails where a product takes what is no box, and where a nest has none and no statements.
llvm::FailureOr<StagedBoxes> findBoxes(LoopOp groups, Rounds rounds, TileVariance &variance);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_FINDBOXES_H
