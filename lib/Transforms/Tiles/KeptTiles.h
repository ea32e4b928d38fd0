// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sums in a workspace of the whole kernel, which lie tile by tile as accumulators are loaded and stored.
#ifndef LACIS_LIB_TRANSFORMS_TILES_KEPTTILES_H
#define LACIS_LIB_TRANSFORMS_TILES_KEPTTILES_H

#include "TileStatements.h"

namespace lacis {

/// Is the tensor such a workspace? Others are tiles of a nest.
bool isKept(mlir::Value tensor);
/// An accumulator of the tile that the read takes elements of, on top of `onto`, which may be null; fails where it is none.
mlir::FailureOr<mlir::Value> loadKept(mlir::OpBuilder &b, ReadOp read, mlir::Value onto, TileVariance &variance,
                                      RoleScalars &scalars);
/// Stores an accumulator to the tile that the write has elements of.
mlir::LogicalResult storeKept(mlir::OpBuilder &b, WriteOp write, mlir::Value acc, TileVariance &variance,
                              RoleScalars &scalars);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_KEPTTILES_H
