// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nest that a product of tiles runs: over the execution layout of its stored operand, in the order of work lists.
#ifndef LACIS_LIB_TRANSFORMS_TILES_LAYOUTNEST_H
#define LACIS_LIB_TRANSFORMS_TILES_LAYOUTNEST_H

#include "TileNest.h"

namespace lacis {

/// Puts nests over the layout in the place of the marked one, which walks the format of the values: the product, and, where
/// panels are cut, the sums of their parts.
llvm::FailureOr<llvm::SmallVector<mlir::Operation *>> walkLayout(TileNest &nest);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_LAYOUTNEST_H
