// SPDX-License-Identifier: Apache-2.0
/// \file
/// The roles of a product of stored tiles: a worker's item is a panel, or some steps of it, for the tokens of one tile.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEFORM_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEFORM_H

#include "TileRoles.h"

namespace lacis {

/// Makes the roles of one product in the place of its nest.
class TileForm : public TileRoles {
public:
  using TileRoles::TileRoles;

private:
  /// One accumulator of a consumer: which rows it has, and what is known there of the values of the nest.
  struct Part {
    mlir::Value group;
    RoleScalars scalars;
    TileMaps::Known known;
  };
  using StorePart = llvm::function_ref<void(mlir::OpBuilder &, int64_t n, mlir::Value residual)>;

  llvm::LogicalResult prepare() override;
  TileItem openItems(mlir::OpBuilder &at, mlir::Value worker, mlir::Value &ring) override;
  mlir::Value fill(mlir::OpBuilder &at, const TileItem &item, mlir::Value ring) override;
  mlir::Value fillRounds(mlir::OpBuilder &at, const TileItem &item, mlir::Value ring);
  mlir::Value sum(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &item, mlir::Value ring) override;
  mlir::Value addUp(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &item, mlir::Value ring) override;
  Round openRounds(mlir::OpBuilder &at, const TileItem &item, mlir::ValueRange carried) override;
  RoleScalars roundOf(mlir::OpBuilder &at, const TileItem &item, mlir::Value coordinate) override;
  mlir::Value finish(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value ring, StorePart store);
  llvm::LogicalResult readAxes();
  TileType denseTile();
  mlir::Value rowsOf(mlir::Value tensor);
  RoleScalars scalarsOf(mlir::OpBuilder &at, mlir::Value tile);
  void loadStep(mlir::OpBuilder &at, mlir::Value step, mlir::Value list);
  void loadMatrix(mlir::OpBuilder &in, mlir::Value panel, mlir::Value depth, mlir::Value list);
  void loadLinked(mlir::OpBuilder &in, mlir::Value position, mlir::Value place, mlir::Value list);
  mlir::Value loadResidual(mlir::OpBuilder &at, const TileItem &item, mlir::Value ring);
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> findTiles(mlir::OpBuilder &at, mlir::Value consumer,
                                                                   mlir::Value step, size_t count);
  llvm::SmallVector<mlir::Value> multiplyStep(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value step,
                                              mlir::Value ring, mlir::ValueRange accs);
  llvm::SmallVector<Part> locate(mlir::OpBuilder &at, mlir::Value consumer, const TileItem &item);
  mlir::Value begin(mlir::OpBuilder &at, Part &part);
  void store(mlir::OpBuilder &at, mlir::Value acc, Part part, mlir::Value residual);
  mlir::Value pass(mlir::OpBuilder &at, mlir::Value consumers, mlir::Value ring);

  mlir::Value depthIndex;
  mlir::Value tiles, residualRows, matrixRows, rowTiles;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEFORM_H
