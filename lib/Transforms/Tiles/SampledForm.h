// SPDX-License-Identifier: Apache-2.0
/// \file
/// What forms the roles of a sampled product of tiles: its shares (SampledLists.cpp), and what is done of each
/// (SampledTiles.cpp).
#ifndef LACIS_LIB_TRANSFORMS_TILES_SAMPLEDFORM_H
#define LACIS_LIB_TRANSFORMS_TILES_SAMPLEDFORM_H

#include "SampledTiles.h"
#include "TileFactors.h"
#include "TileRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace lacis {

/// A share: steps [first, first + count) of its panel, which has those in [begin, end), and the rounds of its sum that
/// are done here. They are part `part` of `parts`; the part's sum is kept in `slot`, where that is not negative. Of values
/// in copies that share a pattern it is done for `copy`.
struct Share {
  RoleScalars scalars;
  mlir::Value panel, begin, end, first, count, from, rounds, part, parts, slot, copy;
};

/// Makes the roles of a sampled product of tiles.
class SampledForm : TileRoles {
public:
  SampledForm(mlir::func::FuncOp function, SampledNest &nest)
      : TileRoles(function, nest.product.entries, nest.product.sum->getLoc()), nest(nest), layout(nest.layout) {}

  llvm::LogicalResult run();

private:
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, const Share &, mlir::Value ring)>;

  void produce(mlir::OpBuilder &at, mlir::Value worker, mlir::Value ring) override;
  void consume(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value worker, mlir::Value ring) override;
  mlir::Value workLists();
  Share shareOf(mlir::OpBuilder &in, llvm::ArrayRef<mlir::Value> found);
  mlir::Value forEachShare(mlir::OpBuilder &at, mlir::Value worker, mlir::Value ring, Body body);
  mlir::Value forEachCopy(mlir::OpBuilder &at, const Share &share, mlir::Value ring, Body body);
  llvm::SmallVector<mlir::Value> rowsOf(mlir::OpBuilder &at, const Share &share);
  llvm::LogicalResult readAxes();
  RoleScalars roundOf(mlir::OpBuilder &at, const Share &share, mlir::Value round);
  using LoadTile = llvm::function_ref<void(mlir::OpBuilder &in, const RoleScalars &round, mlir::Value tile)>;
  void loadPart(mlir::OpBuilder &at, ReadOp read, RoleScalars scalars, mlir::Value line, mlir::Value tile,
                mlir::Value place);
  mlir::Value fillStages(mlir::OpBuilder &at, const Share &share, llvm::ArrayRef<mlir::Value> rows, mlir::Value ring,
                         LoadTile others);
  void keep(mlir::OpBuilder &at, mlir::Value consumer, const Share &share, int64_t steps, mlir::Value acc);
  void addUp(mlir::OpBuilder &at, mlir::Value consumer, const Share &share);
  using StepBody = llvm::function_ref<void(mlir::OpBuilder &, int64_t n, mlir::Value step)>;
  void forEachOwnStep(mlir::OpBuilder &at, mlir::Value consumer, const Share &share, int64_t steps, StepBody body);
  void storeShare(mlir::OpBuilder &at, mlir::Value consumer, const Share &share, int64_t steps, mlir::Value acc);
  void finish(mlir::OpBuilder &at, mlir::Value consumer, const Share &share, int64_t steps, mlir::Value acc);
  mlir::Value fill(mlir::OpBuilder &at, const Share &share, mlir::Value ring);
  using Multiply = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value left, mlir::Value right,
                                                  mlir::Value onto)>;
  mlir::Value sumRounds(mlir::OpBuilder &at, mlir::Value consumer, const Share &share, int64_t steps, mlir::Value ring,
                        Multiply multiply);
  mlir::Value sum(mlir::OpBuilder &at, mlir::Value consumer, const Share &share, mlir::Value ring);
  void storeStep(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value acc, const Share &share, mlir::Value step,
                 int64_t column);
  void store(mlir::OpBuilder &at, mlir::Value acc, mlir::Value rowGroup, const Share &share, mlir::Value step,
             int64_t column);
  mlir::Value columnOf(mlir::OpBuilder &at, const Share &share, mlir::Value step);
  mlir::Value firstColumn(mlir::OpBuilder &at, const Share &share);
  mlir::Value fillGathered(mlir::OpBuilder &at, const Share &share, mlir::Value ring);
  mlir::Value sumGathered(mlir::OpBuilder &at, mlir::Value consumer, const Share &share, int64_t steps,
                          mlir::Value ring);
  mlir::Value sumSome(mlir::OpBuilder &at, mlir::Value consumer, const Share &share, int64_t steps, mlir::Value ring);
  void storeGathered(mlir::OpBuilder &at, mlir::Value acc, const Share &share, mlir::Value step, int64_t column);
  mlir::Value slotWhere(mlir::OpBuilder &at, mlir::Value some,
                        llvm::function_ref<mlir::Value(mlir::OpBuilder &)> position);
  mlir::Value slotOf(mlir::OpBuilder &at, mlir::Value step, mlir::Value bits, mlir::Value lo, mlir::Value bit);
  mlir::Value columns(mlir::OpBuilder &at, mlir::Value acc, int64_t first, int64_t count);
  TileMaps mapsOf(RoleScalars &scalars, TileMaps::Known &known) {
    return TileMaps(variance, scalars, known, rowIndex, TileMaps::Exponential::AsWritten);
  }
  mlir::Value finished(mlir::OpBuilder &at, mlir::Value sums, const Share &share, mlir::Value step, int64_t across);

  mlir::Value rowGroupOf(mlir::Value consumer) { return nest.splitsRows() ? consumer : zero; }
  int64_t accColumns() { return nest.ownSteps() * layout.step; }
  mlir::Value word(mlir::OpBuilder &at, int64_t value) {
    return mlir::arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(static_cast<int32_t>(value)));
  }

  SampledNest &nest;
  const TileLayout &layout;
  TileVariance variance;
  mlir::Value rowIndex, columnIndex;
  mlir::Value regrouped, lists, rounds, zero;
  llvm::LogicalResult result = llvm::success();
  bool isSummingUp = false; // the nest behind, which adds up the parts of shares
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_SAMPLEDFORM_H
