// SPDX-License-Identifier: Apache-2.0
/// \file
/// The roles that a product of tiles becomes: one producer loads tiles into a ring, consumers multiply them.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEFORM_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEFORM_H

#include "TileFactors.h"
#include "TileNest.h"
#include "TileRoles.h"

namespace lacis {

/// Makes the roles of one product in the place of its nest.
class TileForm : TileRoles {
public:
  TileForm(mlir::func::FuncOp function, TileNest &nest)
      : TileRoles(function, nest.panels, nest.product.sum->getLoc()), nest(nest), layout(nest.layout) {}

  llvm::LogicalResult run();

private:
  /// What a worker does at once: a panel, or `count` steps of it from the `first` on, for the tokens of one tile. Such
  /// steps are part `part` of `parts`, whose sum is kept in `slot` of the workspace; of a whole panel that is negative.
  struct Item {
    mlir::Value panel;
    RoleScalars scalars; // of the tile of the dense axis
    mlir::Value first, count, part, parts, slot;
  };
  /// One accumulator of a consumer: which rows it has, and what is known there of the values of the nest.
  struct Part {
    mlir::Value group;
    RoleScalars scalars;
    TileMaps::Known known;
  };
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, const Item &item, mlir::Value ring)>;
  using Round = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Value position,
                                                                  mlir::Value coordinate, mlir::ValueRange carried)>;
  using Branch = llvm::function_ref<mlir::Value(mlir::OpBuilder &)>;
  using StorePart = llvm::function_ref<void(mlir::OpBuilder &, int64_t n, mlir::Value residual)>;

  void produce(mlir::OpBuilder &at, mlir::Value worker, mlir::Value ring) override;
  void consume(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value worker, mlir::Value ring) override;
  void prepare();
  void prepareLists();
  void forEachItem(mlir::OpBuilder at, mlir::Value worker, mlir::Value ring, Body body);
  /// The steps of an item, or of a whole panel.
  mlir::ValueRange forEachStep(mlir::OpBuilder &at, const Item &item, mlir::ValueRange carried, Round round);
  /// The place in the ring behind what is done of a whole panel, which an item may be known to be, or of a part.
  mlir::Value whereWhole(mlir::OpBuilder &at, const Item &item, Branch whole, Branch otherwise);
  void keep(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value slot, mlir::ValueRange accs);
  mlir::Value addUp(mlir::OpBuilder &at, mlir::Value consumer, const Item &item, mlir::Value ring);
  mlir::Value finish(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value ring, StorePart store);
  mlir::Value fill(mlir::OpBuilder &in, const Item &item, mlir::Value position, mlir::Value coordinate,
                   mlir::Value ring);
  llvm::LogicalResult readAxes();
  TileType denseTile();
  mlir::Value sizeOf(mlir::Value tensor, unsigned axis);
  RoleScalars scalarsOf(mlir::OpBuilder &at, mlir::Value tile);
  void loadStep(mlir::OpBuilder &at, mlir::Value step, mlir::Value list);
  void loadMatrix(mlir::OpBuilder &in, mlir::Value panel, mlir::Value depth, mlir::Value list);
  void loadLinked(mlir::OpBuilder &in, mlir::Value position, mlir::Value place, mlir::Value list);
  mlir::Value sum(mlir::OpBuilder &at, mlir::Value consumer, const Item &item, mlir::Value ring);
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> findTiles(mlir::OpBuilder &at, mlir::Value consumer,
                                                                   mlir::Value step, size_t count);
  llvm::SmallVector<mlir::Value> multiplyStep(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value step,
                                              mlir::Value ring, mlir::ValueRange accs);
  llvm::SmallVector<Part> locate(mlir::OpBuilder &at, mlir::Value consumer, const Item &item);
  mlir::Value begin(mlir::OpBuilder &at, Part &part);
  TileMaps mapsOf(Part &part) {
    return TileMaps(variance, part.scalars, part.known, rowIndex, TileMaps::Exponential::AsWritten);
  }
  void store(mlir::OpBuilder &at, mlir::Value acc, Part part, mlir::Value residual);
  mlir::Value loadResidual(mlir::OpBuilder &at, const Item &item, mlir::Value ring);
  mlir::Value pass(mlir::OpBuilder &at, mlir::Value consumers, mlir::Value ring);

  TileNest &nest;
  const TileLayout &layout;
  TileVariance variance;
  mlir::Value rowIndex, columnIndex, depthIndex;
  ReadOp residual; // or null
  llvm::LogicalResult result = llvm::success();
  bool isSummingUp = false; // the nest behind, which adds up the parts of panels
  mlir::Value regrouped, lists, workers, tiles, zero, residualRows, matrixRows, rowTiles;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEFORM_H
