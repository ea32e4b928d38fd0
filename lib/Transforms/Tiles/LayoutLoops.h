// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops of a nest over an execution layout, in the order of work lists.
#ifndef LACIS_LIB_TRANSFORMS_TILES_LAYOUTLOOPS_H
#define LACIS_LIB_TRANSFORMS_TILES_LAYOUTLOOPS_H

#include "TileNest.h"
#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace lacis {

/// Makes nests in the place of a marked one: products (LayoutNest.cpp), and those sampled on a pattern (ShareNest.cpp).
///
/// Where work is cut an item is a part of a sum, which is kept in a workspace, and a nest behind adds up the parts, in their
/// order.
class LayoutLoops {
public:
  /// The outermost loops of what is made.
  llvm::SmallVector<mlir::Operation *> nests() const { return made; }

protected:
  explicit LayoutLoops(TileNest &nest)
      : b(nest.top), loc(nest.product.sum->getLoc()), nest(nest), layout(nest.layout), numbers(nest.top) {}

  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, loc, value); }
  mlir::Value multiply(mlir::OpBuilder &at, mlir::Value lhs, int64_t rhs) {
    return rhs == 1 ? lhs : mlir::arith::MulIOp::create(at, loc, lhs, constant(rhs)).getResult();
  }
  mlir::Value add(mlir::OpBuilder &at, mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::AddIOp::create(at, loc, lhs, rhs);
  }
  /// The layout, its lists, and where work is cut the workspace, in tiles of so many columns; the sums of a slot have
  /// `across` columns and `down` rows.
  void makeTensors(int64_t columns, int64_t across, int64_t down);
  /// Opens a loop; `close` ends all that are open.
  LoopOp open(mlir::OpBuilder &at, const LoopName &name, mlir::Value upper);
  LevelLoopOp open(mlir::OpBuilder &at, const LoopName &name, mlir::Value tensor, unsigned level, mlir::Value parent);
  void close(mlir::OpBuilder &at);
  /// Begins a nest with the loop over workers.
  LoopOp openWorkers(mlir::OpBuilder &at);
  /// The entries of a list, which say these numbers of an item, level by level; and those of its part.
  void openEntries(mlir::OpBuilder &at, mlir::Value list, llvm::SmallVector<mlir::Value *> fields);
  /// The rounds of the loop are elements of a tile.
  LoopOp openTileLoop(mlir::OpBuilder &at, LoopOp marked, int64_t size, TileSide side);
  /// A round of the sum: what it adds to is `carried`. `depth` is the loop of a tile.
  mlir::Value addProducts(mlir::OpBuilder &at, LoopName depth, int64_t size, mlir::Value carried,
                          llvm::function_ref<std::pair<mlir::Value, mlir::Value>(mlir::OpBuilder &, mlir::Value)> factors);
  using PlaceOf = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, mlir::Value slot)>;
  /// Keeps the sum of a part, where `at` goes on with whole items.
  void keepPart(mlir::OpBuilder &at, PlaceOf placeOf);
  /// Who has part n of an item adds up the tiles that are numbered n modulo the number of parts: the first part, and the
  /// others onto it, in their order. `at` goes on with their sum.
  void addUpParts(mlir::OpBuilder &at, mlir::Value number, PlaceOf placeOf);
  /// The marked nest goes, if nothing asks for its loops.
  llvm::LogicalResult replace();

  mlir::OpBuilder b; // before the nest
  mlir::Location loc;
  TileNest &nest;
  const TileLayout &layout;
  RoleScalars numbers; // of the marked nest, as the new one has them
  mlir::Value walked, lists, workers, kept;
  mlir::Value panel, part, parts, slot; // of an item; where work is cut which part it is, and where its sum goes
  bool isSummingUp = false;             // the nest behind

private:
  llvm::SmallVector<mlir::Operation *> loops, made; // of one nest; the outermost of each
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_LAYOUTLOOPS_H
