// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a producer loads: the boxes of a round, or those that stay.
#ifndef LACIS_LIB_TRANSFORMS_TILES_BOXLOADS_H
#define LACIS_LIB_TRANSFORMS_TILES_BOXLOADS_H

#include "TileStatements.h"

namespace lacis {

class BoxLoads {
public:
  BoxLoads(LoopOp groups, mlir::Location loc, TileVariance &variance, StagedBoxes &boxes, RoleScalars &scalars)
      : groups(groups), loc(loc), variance(variance), boxes(boxes), scalars(scalars) {}

  /// Fills the present place of a ring; answers the next.
  mlir::Value load(mlir::OpBuilder &b, StagedBox &ring);

private:
  using Bases = llvm::SmallVector<llvm::SmallVector<mlir::Value>>; // of each part
  llvm::MutableArrayRef<RoleScalars> partsOf(const StagedBox &box);
  Bases basesOf(mlir::OpBuilder &b, const StagedBox &box);
  void fill(mlir::OpBuilder &b, StagedBox &box, const Bases &bases, mlir::ValueRange tiles);
  void fillEach(mlir::OpBuilder &b, StagedBox &box, mlir::Value list);

  LoopOp groups;
  mlir::Location loc;
  TileVariance &variance;
  StagedBoxes &boxes;
  RoleScalars &scalars;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_BOXLOADS_H
