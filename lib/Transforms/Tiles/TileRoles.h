// SPDX-License-Identifier: Apache-2.0
/// \file
/// The roles that sampled products of tiles become, side by side on each worker: one producer loads tiles into a ring, consumers
/// multiply them.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEROLES_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEROLES_H

#include "TileFactors.h"
#include "TileNest.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lacis {

/// What a worker does at once: steps [first, first + count) of a panel. Where sums are cut it has part `part` of `parts`,
/// whose sum is kept in `slot` of the workspace; of a whole item that is negative.
struct TileItem {
  RoleScalars scalars; // of the copy
  mlir::Value panel, first = {}, count = {}, part = {}, parts = {}, slot = {};
  mlir::Value begin = {}, end = {}, from = {}, rounds = {}, copy = {}; // of a share: all steps of its panel, and the rounds of its sum
};

class TileRoles {
public:
  /// The roles stand before the nest, which they take the place of.
  TileRoles(mlir::func::FuncOp function, TileNest &nest)
      : b(nest.top), loc(nest.product.sum->getLoc()), function(function), nest(nest), layout(nest.layout) {}
  virtual ~TileRoles() = default;

  llvm::LogicalResult run();

protected:
  /// What a loop over the rounds of an item has: where they are in the layout, what they are of, and what they carry.
  struct Round {
    mlir::Value position, coordinate;
    mlir::ValueRange carried;
  };

  /// The axes of tiles, the types of the ring and of accumulators, and what both roles read.
  virtual llvm::LogicalResult prepare() = 0;
  /// Opens the loops over the items of a worker, each of which takes a place in the ring and gives the next.
  virtual TileItem openItems(mlir::OpBuilder &at, mlir::Value worker, mlir::Value &ring) = 0;
  /// What the producer loads of an item; what a consumer sums up and stores of it; and of its parts, in the nest behind.
  virtual mlir::Value fill(mlir::OpBuilder &at, const TileItem &item, mlir::Value ring) = 0;
  virtual mlir::Value sum(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &item, mlir::Value ring) = 0;
  virtual mlir::Value addUp(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &item, mlir::Value ring) = 0;
  /// Opens the loop over the rounds of an item; and the numbers of one of them.
  virtual Round openRounds(mlir::OpBuilder &at, const TileItem &item, mlir::ValueRange carried) = 0;
  virtual RoleScalars roundOf(mlir::OpBuilder &at, const TileItem &item, mlir::Value coordinate) = 0;

  mlir::Value constant(int64_t value);
  mlir::Value add(mlir::OpBuilder &at, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value multiply(mlir::OpBuilder &at, mlir::Value lhs, int64_t rhs);
  mlir::ValueRange acquire(mlir::OpBuilder &at, mlir::Value ring);
  mlir::Value release(mlir::OpBuilder &at, mlir::Value ring);
  using Branch = llvm::function_ref<mlir::Value(mlir::OpBuilder &)>;
  /// The place in the ring behind what is done of a whole item, which one may be known to be, or of a part.
  mlir::Value whereWhole(mlir::OpBuilder &at, const TileItem &item, Branch whole, Branch otherwise);
  /// Products that are under way end: what rounds have left.
  mlir::ValueRange complete(mlir::OpBuilder &at, mlir::ValueRange summed);
  /// Ends the loops in `outer` with what they carry, and goes on behind them with what they have left.
  mlir::ValueRange leaveLoops(mlir::OpBuilder &at, mlir::Block *outer, mlir::ValueRange carried);
  /// What list `number` says, level by level; the loops take their names from `panel` and `item`, and stay open.
  llvm::SmallVector<mlir::Value> openList(mlir::OpBuilder &at, const LoopName &panel, const LoopName &item,
                                          mlir::Value number, mlir::Value &ring);
  /// The tile of the workspace that is number `own` of the `each` that a consumer has in a slot of `all` tiles.
  mlir::Value slotPlace(mlir::OpBuilder &at, mlir::Value slot, int64_t all, mlir::Value consumer, int64_t each,
                        int64_t own);
  using PlaceOf = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value slot)>;
  using SumBody = llvm::function_ref<void(mlir::OpBuilder &, mlir::Value sum)>;
  /// Who has part n of an item adds up what is numbered n modulo the number of parts: here the tile `number`, of `type`,
  /// which has its place in each slot from `first` on. The parts are added in their order.
  void addUpOwn(mlir::OpBuilder &at, const TileItem &item, mlir::Value first, mlir::Value number, AccType type,
                PlaceOf placeOf, SumBody body);
  TileMaps mapsOf(RoleScalars &scalars, TileMaps::Known &known) {
    return TileMaps(variance, scalars, known, rowIndex, TileMaps::Functions::AsWritten);
  }

  mlir::OpBuilder b; // before the roles
  mlir::Location loc;
  mlir::func::FuncOp function;
  TileNest &nest;
  const TileLayout &layout;
  TileVariance variance;
  mlir::Value rowIndex, columnIndex;
  RingType ringType;
  AccType accType;
  mlir::Value regrouped, lists, workers, zero;
  mlir::Value kept; // the workspace for the sums of parts
  llvm::LogicalResult result = llvm::success();
  bool isSummingUp = false; // the nest behind, which adds up the parts of items

private:
  void makeRoles();

  llvm::DenseMap<int64_t, mlir::Value> constants;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEROLES_H
