// SPDX-License-Identifier: Apache-2.0
/// \file
/// Factors of products: boxes of dense operands as tiles, and the product of two.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEFACTORS_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEFACTORS_H

#include "TileStatements.h"

namespace lacis {

/// The tile of a box of so many rows and columns: lines of 128 bytes at the most, side by side.
TileType tileOfBox(mlir::Type element, int64_t rows, int64_t columns);
/// Where the box of its operand begins that the elements of a read are in.
llvm::SmallVector<mlir::Value> basesOf(mlir::OpBuilder &b, const Access &read, TileVariance &variance, RoleScalars &scalars);
/// Loads it into a tile, of a list into the one at `place`; or a part of it into one of the tile.
void loadBox(mlir::OpBuilder &b, const Access &read, llvm::ArrayRef<mlir::Value> bases, mlir::Value tile,
             mlir::Value place = {}, TilePart part = {});
/// The same of what begins at `from` in a tensor.
void loadTile(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor, mlir::ValueRange from, mlir::Value tile,
              mlir::Value place = {}, TilePart part = {});
/// Loads a vector as numbers of the rows of a statement, whose coordinate is `row`, or else of its columns.
mlir::Value loadVector(mlir::OpBuilder &b, ReadOp read, mlir::Value row, TileVariance &variance, RoleScalars &scalars);

/// What is multiplied: an accumulator, or a tile; of a list the one at `place`, or, where `present` is not null, those
/// along the sum from there on that its bits have.
struct TileFactor {
  mlir::Value tile;
  bool isTransposed = false; // its rows lie along the sum
  mlir::Value place = {}, present = {};
};

/// onto + sum over k of left[m, k] right[n, k]; of a transposed list on the right all tiles, side by side.
mlir::Value multiplyTiles(mlir::OpBuilder &b, mlir::Location loc, AccType type, TileFactor left, TileFactor right,
                          mlir::Value onto, bool isTf32 = false);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEFACTORS_H
