// SPDX-License-Identifier: Apache-2.0
/// \file
/// Work lists of the panels of an execution layout: which worker has which items.
#ifndef LACIS_LIB_TRANSFORMS_TILES_WORKLISTS_H
#define LACIS_LIB_TRANSFORMS_TILES_WORKLISTS_H

#include "TileNest.h"

namespace lacis {

/// Makes them, as the marks of the nest say.
mlir::Value makeLists(mlir::OpBuilder &b, TileNest &nest, mlir::Value layout);
/// The axis of lists that has one element for each worker.
unsigned workersOf(mlir::Value lists);
/// The first level of lists that has their items.
unsigned itemsOf(mlir::Value lists);

/// The sums of a slot, and the columns of the tiles that they lie in.
struct KeptSizes {
  int64_t columns, across, down;
};
/// The workspace for sums of parts of items.
mlir::Value makeKept(mlir::OpBuilder &b, TileNest &nest, mlir::Value workers, KeptSizes sizes);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_WORKLISTS_H
