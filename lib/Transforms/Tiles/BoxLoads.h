// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a producer loads: the boxes of a round, or those that stay.
#ifndef LACIS_LIB_TRANSFORMS_TILES_BOXLOADS_H
#define LACIS_LIB_TRANSFORMS_TILES_BOXLOADS_H

#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace lacis {

class BoxLoads {
public:
  BoxLoads(LoopOp groups, mlir::Location loc, TileVariance &variance, StagedBoxes &boxes, RoleScalars &scalars)
      : groups(groups), loc(loc), variance(variance), boxes(boxes), scalars(scalars) {}

  /// Finds the parts of a box that lie apart, before rounds that all take them from there.
  void findParts(mlir::OpBuilder &b, StagedBox &box);
  /// Fills the present place of a ring; answers the next.
  mlir::Value load(mlir::OpBuilder &b, StagedBox &ring);

private:
  using Bases = llvm::SmallVector<llvm::SmallVector<mlir::Value>>; // of each part
  llvm::MutableArrayRef<RoleScalars> partsOf(const StagedBox &box);
  Bases basesOf(mlir::OpBuilder &b, const StagedBox &box);
  void fill(mlir::OpBuilder &b, StagedBox &box, const Bases &bases, mlir::ValueRange tiles);
  void fillEach(mlir::OpBuilder &b, StagedBox &box, mlir::Value list);
  void shareNumbers(mlir::OpBuilder &b, mlir::Value number);
  void findLines(mlir::OpBuilder &b, StagedBox &box);
  mlir::Value constant(mlir::OpBuilder &b, int64_t value) { return mlir::arith::ConstantIndexOp::create(b, loc, value); }

  LoopOp groups;
  mlir::Location loc;
  TileVariance &variance;
  StagedBoxes &boxes;
  RoleScalars &scalars;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_BOXLOADS_H
