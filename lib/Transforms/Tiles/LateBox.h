// SPDX-License-Identifier: Apache-2.0
/// \file
/// A staged operand that statements behind the rounds read element by element, as a residual is.
#ifndef LACIS_LIB_TRANSFORMS_TILES_LATEBOX_H
#define LACIS_LIB_TRANSFORMS_TILES_LATEBOX_H

#include "TileStatements.h"

namespace lacis {

/// Its boxes arrive in places of the ring of a box that is as large, behind the last round: those of one consumer after
/// another. A consumer lets those of others pass.
class LateBox {
public:
  /// Finds it; without a box that is as large there is none, and statements read the elements where they lie.
  static LateBox find(LoopOp groups, LoopOpInterface round, StagedBoxes &boxes, TileVariance &variance);
  /// The rings that its boxes move on, if there is one.
  llvm::SmallVector<StagedBox *> rings(StagedBoxes &own);
  /// Loads the boxes of all consumers, in the branch whose statements read them.
  void load(mlir::OpBuilder &b, StagedBoxes &own, RoleScalars &scalars);
  /// Emits a statement of a consumer, and, where that reads a box, takes it.
  llvm::LogicalResult emit(mlir::OpBuilder &b, LoopOp statement, StagedBoxes &own, RoleScalars &scalars,
                           TileStatements &statements);

private:
  void loadAll(mlir::OpBuilder &b, StagedBoxes &own, RoleScalars &scalars);
  void pass(mlir::OpBuilder &b, StagedBoxes &own, mlir::Value consumers);
  mlir::Value take(mlir::OpBuilder &b, StagedBoxes &own, ReadOp read);
  mlir::ValueRange acquire(mlir::OpBuilder &b, StagedBoxes &own);
  void release(mlir::OpBuilder &b, StagedBoxes &own);

  LoopOp groups;
  TileVariance *variance = nullptr;
  llvm::SmallVector<ReadOp> reads; // of each statement
  unsigned ring = 0;               // the number of the box
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_LATEBOX_H
