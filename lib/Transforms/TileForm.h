// SPDX-License-Identifier: Apache-2.0
/// \file
/// The roles that a product of tiles becomes: one producer loads tiles into a ring, consumers multiply them.
#ifndef LACIS_LIB_TRANSFORMS_TILEFORM_H
#define LACIS_LIB_TRANSFORMS_TILEFORM_H

#include "TileNest.h"
#include "TileRoles.h"

namespace lacis {

/// Makes the roles of one product in the place of its nest.
class TileForm : TileRoles {
public:
  TileForm(mlir::func::FuncOp function, TileNest &nest)
      : TileRoles(function, nest.panels, nest.product.walk->getLoc()), nest(nest), layout(nest.layout) {}

  llvm::LogicalResult run();

private:
  using Body =
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Value panel, mlir::Value column, mlir::Value ring)>;

  void produce(mlir::OpBuilder &at, mlir::Value worker, mlir::Value ring) override;
  void consume(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value worker, mlir::Value ring) override;
  void prepare();
  void forEachItem(mlir::OpBuilder at, mlir::Value worker, mlir::Value ring, Body body);
  void fill(mlir::OpBuilder &at, mlir::Value panel, mlir::Value column, LevelLoopOp steps);
  void loadStep(mlir::OpBuilder &at, mlir::Value step, mlir::Value list);
  void loadMatrix(mlir::OpBuilder &in, mlir::Value panel, mlir::Value depth, mlir::Value list);
  void loadLinked(mlir::OpBuilder &in, mlir::Value position, mlir::Value place, mlir::Value list);
  mlir::Value sum(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value panel, mlir::Value column, mlir::Value ring);
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> findTiles(mlir::OpBuilder &at, mlir::Value consumer,
                                                                   mlir::Value step, size_t count);
  llvm::SmallVector<mlir::Value> multiplyStep(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value step,
                                              mlir::Value ring, mlir::ValueRange accs);
  /// Where one accumulator of a consumer stands in the output, and the vectors that follow the sum, at its rows.
  struct Part {
    mlir::Value group, row;
    llvm::SmallVector<mlir::Value> vectors;
  };
  llvm::SmallVector<Part> locate(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value panel);
  mlir::Value begin(mlir::OpBuilder &at, const Part &part, mlir::Value column);
  mlir::Value applyFinish(mlir::OpBuilder &at, mlir::Value acc, const Part &part, mlir::Value residual);
  void store(mlir::OpBuilder &at, mlir::Value acc, const Part &part, mlir::Value column, mlir::Value residual);
  mlir::Value loadResidual(mlir::OpBuilder &at, mlir::Value panel, mlir::Value column, mlir::Value ring);
  mlir::Value pass(mlir::OpBuilder &at, mlir::Value consumers, mlir::Value ring);
  mlir::Value finishWithResidual(mlir::OpBuilder &at, mlir::Value consumer, llvm::ArrayRef<Part> parts,
                                 mlir::Value column, mlir::ValueRange done);

  TileNest &nest;
  const TileLayout &layout;
  Finish after;
  mlir::Value regrouped, lists, workers, tiles, zero, residualRows, matrixRows, rowTiles;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILEFORM_H
