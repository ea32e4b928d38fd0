// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops that one warp runs as instructions on tiles: rows around columns, and in them a sum of products.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_WARPTILE_H
#define LACIS_LIB_TRANSFORMS_MACHINE_WARPTILE_H

#include "../Tiles/TileVariance.h"

namespace lacis {

/// The shape of one instruction, m16n8k16; a lane is 4 * group + member, and holds four sums.
inline constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16, kLanes = 32, kMembers = 4, kPieces = 4;

struct WarpTile {
  LoopOp rows, columns, depth;
  mlir::Operation *sum = nullptr; // the outermost loop or guard that carries the sum
  mlir::Value start;              // what it begins with
  mlir::Value left, right;        // the factors, along rows and along columns
  /// From the columns to the sum: a block, and the condition of the guard in it; null in the last, which has the sum.
  llvm::SmallVector<std::pair<mlir::Block *, mlir::Value>> around;
  TileVariance variance;

  bool varies(mlir::Value value) { return !variance.of(value).empty(); }
  bool variesAlong(mlir::Value value, LoopOp loop) { return variance.of(value).contains(loop.getCoordinate()); }
  /// Do neighbours of a factor along the depth lie side by side in memory?
  bool liesAlong(mlir::Value factor);
  mlir::LogicalResult refuse(const llvm::Twine &why) {
    return rows.emitError("tensorize: loops of a warp's tile ") << why;
  }

private:
  bool isConsecutive(mlir::Value value);
};

/// Does an operation, or one inside it, write?
bool writes(mlir::Operation *op);

/// The tile whose rows are a loop, or an error that says what a warp cannot run.
mlir::FailureOr<WarpTile> readWarpTile(LoopOp rows);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_WARPTILE_H
