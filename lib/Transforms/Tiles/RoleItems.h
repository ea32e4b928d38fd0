// SPDX-License-Identifier: Apache-2.0
/// \file
/// What stands around the rounds of a role: loops over the items of work lists, and the conditions of a row.
#ifndef LACIS_LIB_TRANSFORMS_TILES_ROLEITEMS_H
#define LACIS_LIB_TRANSFORMS_TILES_ROLEITEMS_H

#include "TileStatements.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lacis {

/// Each role has these loops once more. They hand on the places of its rings, which begin once a block.
class RoleItems {
public:
  /// Those between the loops that are bound to blocks and the one over warpgroups; fails where others stand there.
  static llvm::FailureOr<RoleItems> around(LoopOp groups, LoopOpInterface round);
  /// What the roles take the place of.
  LoopOpInterface outermost() const { return loops.front(); }
  void open(mlir::OpBuilder &b, RoleScalars &scalars, StagedBoxes &own);
  void close(mlir::OpBuilder &b, StagedBoxes &own);

private:
  llvm::SmallVector<LoopOpInterface> loops; // outermost first; the last is the one over warpgroups
  llvm::SmallVector<mlir::Value> conditions; // of the row
  llvm::SmallVector<mlir::Operation *> opened;
};

/// A branch of a role: both sides hand on the places of these rings.
void chooseBranch(mlir::OpBuilder &b, mlir::Location loc, mlir::Value condition, llvm::ArrayRef<StagedBox *> rings,
                  RoleScalars &scalars, llvm::function_ref<void(mlir::OpBuilder &, bool isFirst)> body);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_ROLEITEMS_H
