// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a warp loads of tiles in shared memory, as its products take it.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_FRAGMENTS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_FRAGMENTS_H

#include "../Roles/RoleBody.h"
#include "Instructions.h"

namespace lacis::ampere {

/// Where a lane reads its row of the four matrices of 8 x 16 bytes that make 16 rows and 32 bytes of a tile, or of
/// transposed tiles side by side: along the rows or columns of the accumulator, and along the contraction.
class Fragments {
public:
  /// `side`: the first row or column of this warp. `isLeft`: an operand's matrices come in the order that its
  /// registers have in the instruction.
  Fragments(Instructions &i, mlir::OpBuilder &b, mlir::Location loc, TileType tile, bool transposed, bool isLeft,
            mlir::Value base, mlir::Value side, mlir::Value lane);

  /// The registers of rows or columns [16 n, 16 n + 16) of this warp, and of step `step` of the contraction.
  llvm::SmallVector<mlir::Value> load(int64_t n, int64_t step);
  /// The registers of rows [16 n, 16 n + 16) of this warp and of 16 columns from `column` on, of tiles side by side.
  llvm::SmallVector<mlir::Value> loadBeside(int64_t n, mlir::Value column);

private:
  llvm::SmallVector<mlir::Value> loadMatrices(int64_t n, int64_t step);
  llvm::SmallVector<mlir::Value> loadSingles(int64_t n, int64_t step);
  mlir::Value singleStart(int64_t across, int64_t down);
  mlir::Value start(int64_t step);
  mlir::Value transposedStart(int64_t n);
  mlir::Value band(mlir::Value value, int64_t mask);
  mlir::Value shr(mlir::Value value, int64_t bits);
  mlir::Value bxor(mlir::Value x, mlir::Value y);
  mlir::Value bxor(mlir::Value x, int64_t y);

  Instructions &i;
  mlir::OpBuilder &b;
  mlir::Location loc;
  TileType tile;
  int64_t line;
  bool transposed, isLeft, isSingle;
  mlir::Value base, side, lane, laneRow, laneChunk, exchange, lineOffset;
  llvm::SmallDenseMap<int64_t, mlir::Value> starts;
};

} // namespace lacis::ampere

#endif // LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_FRAGMENTS_H
