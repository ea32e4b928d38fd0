// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nest that a product of tiles runs that is sampled on a pattern.
#ifndef LACIS_LIB_TRANSFORMS_TILES_SHARENEST_H
#define LACIS_LIB_TRANSFORMS_TILES_SHARENEST_H

#include "TileNest.h"

namespace lacis {

/// Puts nests over the layout of the pattern in the place of the marked one, which walks its entries: the product, and,
/// where sums are cut, those of their parts.
llvm::FailureOr<llvm::SmallVector<mlir::Operation *>> walkShares(TileNest &nest);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_SHARENEST_H
