// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops of a tile are distributed over the statements of a product.
#ifndef LACIS_LIB_TRANSFORMS_TILES_DISTRIBUTETILES_H
#define LACIS_LIB_TRANSFORMS_TILES_DISTRIBUTETILES_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// for i1, b1: y = sum over j  -->  for i1, b1: s = 0; for j0: for i1, b1: s += sum over j1; for i1, b1: y = s
/// The sum of each place of a tile is an element of a private tensor, so that each round of the loop that loads ahead is one
/// statement of tiles. Answers that loop.
llvm::FailureOr<LoopOpInterface> distributeTiles(mlir::Operation *nest);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_DISTRIBUTETILES_H
