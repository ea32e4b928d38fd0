// SPDX-License-Identifier: Apache-2.0
/// \file
/// The statements of a nest as values of tiles: what a loop does for one element after another is done for all at once.
///
/// Which loops of a tile a value varies along says what becomes of it. Nothing: it stays a number. Rows, columns, or both:
/// it is an accumulator. A sum of products is `mma`, another reduction is `reduce_rows`, arithmetic is `map`.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H
#define LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H

#include "StagedBoxes.h"
#include "TileVariance.h"

namespace lacis {

/// Says what statements of tiles do, where `op` does anything else.
llvm::LogicalResult refuseStatement(mlir::Operation *op);

/// Numbers of a nest, made again in a role.
class RoleScalars {
public:
  explicit RoleScalars(LoopOp replaced) : replaced(replaced) {}
  void map(mlir::Value before, mlir::Value after) { mapping.map(before, after); }
  /// A number that is the same for all of a tile.
  mlir::Value get(mlir::OpBuilder &b, mlir::Value number);

private:
  LoopOp replaced; // what stands in it goes with it
  mlir::IRMapping mapping;
};

/// A sum of products, of which begin and end may lie apart.
struct TileProduct {
  LoopOp sum;
  mlir::Value left, onto; // null is a box, and 0
  StagedBox *leftBox = nullptr, *right = nullptr;
  AccType type;
  mlir::Value begun;
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
  /// Accumulators of values are those of another round.
  void forget() { known.clear(); }
  /// What goes to the output leaves through boxes that nothing reads any more.
  void setLast() { isLast = true; }
  /// Of a number for each row, the parts that threads keep.
  static AccType partsOf(AccType rows);

  /// Is the loop a sum of products of what a round made with a box of the round?
  bool multipliesMade(LoopOp loop);
  /// Is it one of two boxes, of which one is of the round?
  bool multipliesBoxes(LoopOp loop);
  /// The sum goes to the tensor with the next round: beside its first products.
  void postpone(mlir::Value tensor, LoopOp sum) { later[tensor].sum = sum; }
  bool hasPostponed() const { return !later.empty(); }
  bool isPostponed(LoopOp statement);
  TileProduct *postponed(mlir::Value tensor) { return later.contains(tensor) ? &later[tensor] : nullptr; }
  /// Tensors hold the sums of the round before.
  void finishPostponed(mlir::OpBuilder &b);

private:
  llvm::LogicalResult emitBlock(mlir::OpBuilder &b, mlir::Block &block);
  llvm::LogicalResult reduce(mlir::OpBuilder &b, LoopOp loop);
  llvm::LogicalResult multiply(mlir::OpBuilder &b, LoopOp loop, mlir::Value column);
  llvm::FailureOr<TileProduct> prepare(mlir::OpBuilder &b, LoopOp loop, mlir::Value column);
  void begin(mlir::OpBuilder &b, TileProduct &product);
  mlir::Value end(mlir::OpBuilder &b, TileProduct &product);
  void beginPostponed(mlir::OpBuilder &b);
  StagedBox *boxOf(mlir::Value factor);
  mlir::Value freeBox(StoreTileOp store);
  llvm::LogicalResult read(ReadOp op);
  llvm::LogicalResult write(mlir::OpBuilder &b, WriteOp op);
  llvm::LogicalResult store(mlir::OpBuilder &b, WriteOp op);
  /// An accumulator of the value along these loops, of `across` columns where `column` is null.
  llvm::FailureOr<mlir::Value> tile(mlir::OpBuilder &b, mlir::Value value, mlir::Value column, mlir::Location loc,
                                    int64_t across = 1);
  mlir::Value acquire(mlir::OpBuilder &b, StagedBox &box);
  void release(mlir::OpBuilder &b, StagedBox &box);

  TileVariance &variance;
  StagedBoxes &boxes;
  RoleScalars &scalars;
  mlir::Value row; // the coordinate of the rows of the present statement
  llvm::DenseMap<mlir::Value, mlir::Value> states, known;
  llvm::MapVector<mlir::Value, TileProduct> later; // by the tensors that they go to
  bool isLast = false;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILESTATEMENTS_H
