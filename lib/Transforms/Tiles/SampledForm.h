// SPDX-License-Identifier: Apache-2.0
/// \file
/// The roles of a sampled product of tiles: its shares (SampledLists.cpp), and what is done of each (SampledTiles.cpp).
#ifndef LACIS_LIB_TRANSFORMS_TILES_SAMPLEDFORM_H
#define LACIS_LIB_TRANSFORMS_TILES_SAMPLEDFORM_H

#include "TileRoles.h"

namespace lacis {

/// Makes the roles of a sampled product of tiles. An item is a share.
class SampledForm : public TileRoles {
public:
  using TileRoles::TileRoles;

private:
  llvm::LogicalResult prepare() override;
  TileItem openItems(mlir::OpBuilder &at, mlir::Value worker, mlir::Value &ring) override;
  mlir::Value fill(mlir::OpBuilder &at, const TileItem &share, mlir::Value ring) override;
  mlir::Value sum(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &share, mlir::Value ring) override;
  mlir::Value addUp(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &share, mlir::Value ring) override;
  Round openRounds(mlir::OpBuilder &at, const TileItem &share, mlir::ValueRange carried) override;
  RoleScalars roundOf(mlir::OpBuilder &at, const TileItem &share, mlir::Value coordinate) override;
  TileItem shareOf(mlir::OpBuilder &in, llvm::ArrayRef<mlir::Value> found);
  void openCopies(mlir::OpBuilder &at, TileItem &share, mlir::Value &ring);
  llvm::SmallVector<mlir::Value> rowsOf(mlir::OpBuilder &at, const TileItem &share);
  void loadPart(mlir::OpBuilder &at, ReadOp read, RoleScalars scalars, mlir::Value line, mlir::Value tile,
                mlir::Value place);
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> columnsOf(mlir::OpBuilder &at, const TileItem &share,
                                                                mlir::Value first, mlir::Value end);
  std::pair<mlir::Value, mlir::Value> spanOf(mlir::OpBuilder &at, const TileItem &share);
  TileItem withNumbers(mlir::OpBuilder &at, TileItem share);
  using StepBody = llvm::function_ref<void(mlir::OpBuilder &, int64_t n, mlir::Value step)>;
  void forEachOwnStep(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &share, int64_t steps, StepBody body);
  mlir::Value finish(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &share, int64_t steps, mlir::Value acc,
                     mlir::Value ring);
  mlir::Value sumShare(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &share, int64_t steps,
                       mlir::Value ring);
  mlir::Value sumSome(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &share, int64_t steps,
                      mlir::Value ring);
  mlir::Value multiplyOwn(mlir::OpBuilder &at, mlir::Value consumer, mlir::ValueRange tiles, mlir::Value onto);
  std::pair<llvm::SmallVector<mlir::Value>, llvm::SmallVector<mlir::Value>>
  findBlocks(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &share, int64_t steps);
  void storeStep(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value acc, const TileItem &share, mlir::Value step,
                 int64_t column);
  llvm::SmallVector<mlir::Value> gatheredSlots(mlir::OpBuilder &at, mlir::Value step);
  mlir::Value columnOf(mlir::OpBuilder &at, const TileItem &share, mlir::Value step);
  mlir::Value firstColumn(mlir::OpBuilder &at, const TileItem &share);
  mlir::Value slotWhere(mlir::OpBuilder &at, mlir::Value some,
                        llvm::function_ref<mlir::Value(mlir::OpBuilder &)> position);
  mlir::Value slotOf(mlir::OpBuilder &at, mlir::Value bits, mlir::Value lo, mlir::Value bit);
  mlir::Value columns(mlir::OpBuilder &at, mlir::Value acc, int64_t first, int64_t count);
  mlir::Value finished(mlir::OpBuilder &at, mlir::Value sums, const TileItem &share, mlir::Value step, int64_t across);
  mlir::Value ownStepOf(mlir::Value consumer) { return nest.splitsRows() ? zero : consumer; }
  mlir::Value word(mlir::OpBuilder &at, int64_t value) {
    return mlir::arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(static_cast<int32_t>(value)));
  }

  LoopOp sumLoop;
  int64_t left = 0, right = 0; // lines of a tile of either operand
  mlir::Value rounds;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_SAMPLEDFORM_H
