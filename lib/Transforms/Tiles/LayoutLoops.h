// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops of a nest over an execution layout, in the order of work lists.
#ifndef LACIS_LIB_TRANSFORMS_TILES_LAYOUTLOOPS_H
#define LACIS_LIB_TRANSFORMS_TILES_LAYOUTLOOPS_H

#include "TileNest.h"
#include "TileStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace lacis {

/// Makes nests in the place of a marked one: products (LayoutNest.cpp), and those sampled on a pattern (ShareNest.cpp) say
/// what their items, their tiles and their sums are.
///
/// Where work is cut an item is a part of a sum, which is kept in a workspace, and a nest behind adds up the parts, in their
/// order.
class LayoutLoops {
public:
  /// The outermost loops of what is made.
  llvm::SmallVector<mlir::Operation *> nests() const { return made; }

protected:
  virtual ~LayoutLoops() = default;
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
  /// Makes the nest, and where work is cut the one behind; the marked one goes, if nothing asks for its loops.
  llvm::LogicalResult replace();
  /// Opens the loops over the items of a worker.
  virtual void openItems(mlir::OpBuilder &at, mlir::Value worker) = 0;
  /// Opens those of a tile, and says where its elements lie.
  virtual void openTile(mlir::OpBuilder &at) = 0;
  /// The sum of an element.
  virtual mlir::Value sum(mlir::OpBuilder &at) = 0;
  /// Stores what follows from it.
  virtual void write(mlir::OpBuilder &at) = 0;
  /// An element of a sum in a slot of the workspace.
  virtual llvm::SmallVector<mlir::Value> placeOfKept(mlir::OpBuilder &at, mlir::Value slot) = 0;
  /// The number of the tile among those of an item.
  virtual mlir::Value tileNumber() = 0;
  /// Opens a loop, which `replace` ends.
  LoopOp open(mlir::OpBuilder &at, const LoopName &name, mlir::Value upper);
  LevelLoopOp open(mlir::OpBuilder &at, const LoopName &name, mlir::Value tensor, unsigned level, mlir::Value parent);
  /// The entries of a list, which say these numbers of an item, level by level; and those of its part.
  void openEntries(mlir::OpBuilder &at, mlir::Value list, llvm::SmallVector<mlir::Value *> fields);
  /// The rounds of the loop are elements of a tile.
  LoopOp openTileLoop(mlir::OpBuilder &at, LoopOp marked, int64_t size, TileSide side);
  /// A round of the sum: what it adds to is `carried`. `depth` is the loop of a tile.
  mlir::Value addProducts(mlir::OpBuilder &at, LoopName depth, int64_t size, mlir::Value carried,
                          llvm::function_ref<std::pair<mlir::Value, mlir::Value>(mlir::OpBuilder &, mlir::Value)> factors);

  mlir::OpBuilder b; // before the nest
  mlir::Location loc;
  TileNest &nest;
  const TileLayout &layout;
  RoleScalars numbers; // of the marked nest, as the new one has them
  mlir::Value walked, lists, workers, kept;
  mlir::Value panel, part, parts, slot; // of an item; where work is cut which part it is, and where its sum goes
  bool isSummingUp = false;             // the nest behind

private:
  void make();
  void close(mlir::OpBuilder &at);
  void keepPart(mlir::OpBuilder &at);
  void addUpParts(mlir::OpBuilder &at);

  llvm::SmallVector<mlir::Operation *> loops, made; // of one nest; the outermost of each
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_LAYOUTLOOPS_H
