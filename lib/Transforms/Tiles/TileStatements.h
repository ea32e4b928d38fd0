// SPDX-License-Identifier: Apache-2.0
/// \file
/// The statements of a nest as values of tiles: what a loop does for one element after another is done for all at once.
///
/// Which loops of a tile a value varies along says what becomes of it. Nothing: it stays a number. Rows, columns, or both:
/// it is an accumulator. A sum of products is `mma`, another reduction is `reduce_rows`, arithmetic is `map`.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H
#define LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H

#include "TileMaps.h"

#include "llvm/ADT/MapVector.h"

namespace lacis {

/// A box of an operand that a product takes: rings of its own bring it.
struct StagedBox {
  ReadOp read;
  bool inRound = false;     // it is another one in each round of the loop that loads ahead
  bool isTransposed = false; // its rows lie along the sum
  TileType tile;
  mlir::Value place;        // of its ring, as far as the role has come
  mlir::Value held;         // the tile, where it is not of a round
};

/// The boxes of a nest, in the order in which products take them.
using StagedBoxes = llvm::MapVector<mlir::Operation *, StagedBox>;

/// Says what statements of tiles do, where `op` does anything else.
llvm::LogicalResult refuseStatement(mlir::Operation *op);
/// Where a box begins: of several axes of a batch it is the number of the matrix.
llvm::SmallVector<mlir::Value> placeOfBox(mlir::OpBuilder &b, mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices);

/// Numbers of a nest, made again in a role.
class RoleScalars {
public:
  explicit RoleScalars(LoopOp replaced) : replaced(replaced) {}
  void map(mlir::Value before, mlir::Value after) { mapping.map(before, after); }
  /// A number that is the same for all of a tile.
  mlir::Value get(mlir::OpBuilder &b, mlir::Value number);
  /// Where an index begins in a tile.
  mlir::Value baseOf(mlir::OpBuilder &b, const TileVariance::Place &place, mlir::Location loc);

private:
  LoopOp replaced; // what stands in it goes with it
  mlir::IRMapping mapping;
};

/// Emits the statements that a consumer runs.
class TileStatements {
public:
  TileStatements(TileVariance &variance, StagedBoxes &boxes, RoleScalars &scalars)
      : variance(variance), boxes(boxes), scalars(scalars) {}

  /// The loops of one statement, or of several.
  llvm::LogicalResult emit(mlir::OpBuilder &b, LoopOp statement);
  /// What a tensor of one round holds now.
  mlir::Value &state(mlir::Value workspace) { return states[workspace]; }

private:
  llvm::LogicalResult emitBlock(mlir::OpBuilder &b, mlir::Block &block);
  llvm::LogicalResult reduce(mlir::OpBuilder &b, LoopOp loop);
  llvm::LogicalResult multiply(mlir::OpBuilder &b, LoopOp loop, mlir::Value column, mlir::Value one, mlir::Value other);
  llvm::FailureOr<mlir::Value> factor(mlir::OpBuilder &b, mlir::Value value, mlir::Value column, mlir::Type element);
  llvm::LogicalResult read(ReadOp op);
  llvm::LogicalResult write(mlir::OpBuilder &b, WriteOp op);
  TileMaps maps();
  /// An accumulator of the value along these loops, of one column where `column` is null.
  llvm::FailureOr<mlir::Value> tile(mlir::OpBuilder &b, mlir::Value value, mlir::Value column, mlir::Location loc);
  mlir::Value acquire(mlir::OpBuilder &b, StagedBox &box);
  void release(mlir::OpBuilder &b, StagedBox &box);

  TileVariance &variance;
  StagedBoxes &boxes;
  RoleScalars &scalars;
  mlir::Value row; // the coordinate of the rows of the present statement
  llvm::DenseMap<mlir::Value, mlir::Value> states, known;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H
