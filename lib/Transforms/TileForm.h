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
  /// What a worker does at once: a panel, or `count` steps of it from the `first` on, for the tokens of one tile. The
  /// sum of such steps is kept in `slot` of the workspace, where that is not negative.
  struct Item {
    mlir::Value panel, column, first, count, slot;
  };
  /// A panel that has been cut for one tile: where its `parts` are kept.
  struct Sum {
    mlir::Value panel, column, slot, parts;
  };
  /// Where one accumulator of a consumer stands in the output, and the vectors that follow the sum, at its rows.
  struct Part {
    mlir::Value group, row;
    llvm::SmallVector<mlir::Value> vectors;
  };
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, const Item &item, mlir::Value ring)>;
  using SumBody = llvm::function_ref<mlir::Value(mlir::OpBuilder &, const Sum &sum, mlir::Value ring)>;
  using Round = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Value position,
                                                                  mlir::Value coordinate, mlir::ValueRange carried)>;

  void produce(mlir::OpBuilder &at, mlir::Value worker, mlir::Value ring) override;
  void consume(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value worker, mlir::Value ring) override;
  void prepare();
  void prepareLists();
  mlir::Value workLists(llvm::StringRef format, bool sums);
  void forEachItem(mlir::OpBuilder at, mlir::Value worker, mlir::Value ring, Body body);
  void forEachSum(mlir::OpBuilder at, mlir::Value worker, mlir::Value ring, SumBody body);
  /// The steps of an item, or of a whole panel.
  mlir::ValueRange forEachStep(mlir::OpBuilder &at, const Item &item, mlir::ValueRange carried, Round round);
  /// The place in the ring behind what is done where the item is no part of a panel, which may be known; `otherwise`
  /// leaves `ring`.
  mlir::Value whereWhole(mlir::OpBuilder &at, const Item &item, mlir::Value ring,
                         llvm::function_ref<mlir::Value(mlir::OpBuilder &)> whole,
                         llvm::function_ref<void(mlir::OpBuilder &)> otherwise = nullptr);
  mlir::Value slotPlace(mlir::OpBuilder &at, mlir::Value slot, mlir::Value consumer, int64_t part);
  void keep(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value slot, mlir::ValueRange accs);
  mlir::Value addUp(mlir::OpBuilder &at, mlir::Value consumer, const Sum &sum, mlir::Value ring);
  mlir::Value finish(mlir::OpBuilder &at, mlir::Value consumer, llvm::ArrayRef<Part> parts, mlir::Value column,
                     mlir::ValueRange done);
  mlir::Value fill(mlir::OpBuilder &in, const Item &item, mlir::Value position, mlir::Value coordinate,
                   mlir::Value ring);
  void loadStep(mlir::OpBuilder &at, mlir::Value step, mlir::Value list);
  void loadMatrix(mlir::OpBuilder &in, mlir::Value panel, mlir::Value depth, mlir::Value list);
  void loadLinked(mlir::OpBuilder &in, mlir::Value position, mlir::Value place, mlir::Value list);
  mlir::Value sum(mlir::OpBuilder &at, mlir::Value consumer, const Item &item, mlir::Value ring);
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> findTiles(mlir::OpBuilder &at, mlir::Value consumer,
                                                                   mlir::Value step, size_t count);
  llvm::SmallVector<mlir::Value> multiplyStep(mlir::OpBuilder &at, mlir::Value consumer, mlir::Value step,
                                              mlir::Value ring, mlir::ValueRange accs);
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
  bool isSummingUp = false; // the nest behind, which adds up the parts of panels
  mlir::Value regrouped, lists, sums, kept, workers, tiles, zero, residualRows, matrixRows, rowTiles;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILEFORM_H
