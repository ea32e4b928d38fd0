// SPDX-License-Identifier: Apache-2.0
/// \file
/// What stands in the loops of a tile: one sum, and stores of what follows from it.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILEBODY_H
#define LACIS_LIB_TRANSFORMS_TILES_TILEBODY_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lacis {

struct TileBody {
  LoopOp outer;                                  // the outermost loop
  LoopOp parts;                                  // jammed: each has a sum of its own; or null
  llvm::SmallVector<LoopOp> tile;                // rows, columns
  mlir::Block *block = nullptr;                  // of the innermost loop of the tile
  llvm::SmallVector<mlir::Value> conditions;     // that are the same for all of the tile
  llvm::SmallVector<mlir::Value> partConditions; // that are the same for neighbouring places of it
  mlir::Operation *sum = nullptr;
  llvm::SmallVector<mlir::Operation *> rounds; // of the sum, outermost first: positions, tiles of a block
  LoopOp depth;                                // of the sum, in a tile; null where no product is summed up
  /// A store under conditions of parts.
  struct Store {
    mlir::Operation *op = nullptr; // `write`, or `set` where the output is stored
    llvm::SmallVector<mlir::Value> conditions;
  };
  Store store, otherwise; // the second where a choice is made for all of the tile
  mlir::scf::IfOp choice; // or null

  /// Finds the loops of the one tile in a nest and reads what stands in them.
  static llvm::FailureOr<TileBody> read(mlir::Operation *nest);
  bool isOfTile(mlir::Value value);

private:
  llvm::SmallVector<mlir::Value> ends; // conditions that differ from place to place of the tile

  LoopOp inner() { return tile[0]->isAncestor(tile[1]) ? tile[1] : tile[0]; }
  bool isOfParts(mlir::Value value);
  void addCondition(mlir::Value condition);
  llvm::LogicalResult openGuards();
  void openInner();
  Store storeOf(mlir::Operation *op);
  llvm::LogicalResult findStore(mlir::Operation *op);
  llvm::LogicalResult findSum();
  llvm::LogicalResult findRounds();
  llvm::LogicalResult checkAdded();
  llvm::LogicalResult checkEnds();
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILEBODY_H
