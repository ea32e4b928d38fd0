// SPDX-License-Identifier: Apache-2.0
/// \file
/// Vectors that the statements of a nest read: one number for each row of a tile, or one for each column.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEVECTORS_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEVECTORS_H

#include "StagedBoxes.h"
#include "StatementRounds.h"

namespace lacis {

/// Does the read of an operand give one number for all of a tile?
bool isNumber(ReadOp read, TileVariance &variance);
/// Finds them. Those of columns come with a box of the round, of their own statement if it has one; those of rows, which
/// are the same in all rounds, are answered. Columns of vectors that no machine copies, as their rows begin anywhere, wait
/// for `loadColumns`. What is neither is read element by element.
llvm::FailureOr<llvm::SmallVector<ReadOp>> findVectors(LoopOp groups, Rounds rounds, TileVariance &variance,
                                                       StagedBoxes &boxes);
/// Loads a vector into a tile of one row, or into a part of it.
void loadLine(mlir::OpBuilder &b, ReadOp read, mlir::Value line, TileVariance &variance, RoleScalars &scalars,
              TilePart part);
/// The numbers of the rows, before the first round.
mlir::Value loadRows(mlir::OpBuilder &b, ReadOp read, TileVariance &variance, RoleScalars &scalars);
/// The numbers of the columns, where a statement with these rows reads them; null for what is no such vector.
mlir::Value loadColumns(mlir::OpBuilder &b, ReadOp read, mlir::Value row, TileVariance &variance, RoleScalars &scalars);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEVECTORS_H
