// SPDX-License-Identifier: Apache-2.0
/// \file
/// Boxes of dense operands, as the tiles that products take.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEBOXES_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEBOXES_H

#include "TileStatements.h"

namespace lacis {

/// The tile of a box of so many rows and columns: lines of 128 bytes at the most, side by side.
TileType tileOfBox(mlir::Type element, int64_t rows, int64_t columns);
/// Where the box of its operand begins that the elements of a read are in.
llvm::SmallVector<mlir::Value> basesOf(mlir::OpBuilder &b, ReadOp read, TileVariance &variance, RoleScalars &scalars);
void loadBox(mlir::OpBuilder &b, ReadOp read, llvm::ArrayRef<mlir::Value> bases, mlir::Value tile);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEBOXES_H
