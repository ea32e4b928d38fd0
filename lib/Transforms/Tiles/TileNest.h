// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the marks of a nest say about its tiles: which loops become what, and how large everything is.
#ifndef LACIS_LIB_TRANSFORMS_TILES_TILENEST_H
#define LACIS_LIB_TRANSFORMS_TILES_TILENEST_H

#include "lacis/Dialect/Lacis/IR/Product.h"

namespace lacis {

/// The execution layout that a nest walks: panels of rows, steps of columns, and in each step the tiles that are
/// stored: `(m floordiv panel : dense, k floordiv step : compressed, (m floordiv rows mod height,
/// k floordiv columns mod width) : bitmap, [link,] m mod rows : dense, k mod columns : dense)`, the last two in the order
/// of the stored blocks.
struct TileLayout {
  FormatAttr format;
  std::optional<int64_t> capacity; // tiles of a step
  int64_t panel = 0, step = 0, rows = 0, columns = 0, height = 0, width = 1;
  bool isLinked = false;   // tiles are read where the values lie
  bool isFull = false;     // each step has all its tiles
  bool transposed = false; // the rows of a tile lie along k

  /// Do bits have a digit of columns, which has one value where a step is as wide as a tile?
  bool hasColumnDigit() const { return format.getLevels()[2].getDigits().size() == 2; }
  int64_t tilesPerStep() const { return capacity.value_or(height * width); }
  /// The tile as it lies in memory.
  std::pair<int64_t, int64_t> shape() const { return transposed ? std::pair(columns, rows) : std::pair(rows, columns); }
  /// Reads the sizes from the format, whose axes have the letters `m` and `k` at these numbers.
  llvm::LogicalResult read(unsigned m, unsigned k);
};

/// How many rounds nested loops of constant counts have together.
int64_t roundsOf(llvm::ArrayRef<LoopOp> loops);

/// A product with all its marks. A worker's item is a panel, for the columns of a tile; of a sampled product a share:
/// neighbouring steps of one panel, whose columns are n.
struct TileNest {
  Product product;
  TileLayout layout;
  WorkListsAttr lists;
  LoopOp top, items, consumers;  // the outermost, the one that is handed out in lists, the one bound to warpgroups
  llvm::SmallVector<LoopOp> parts;                             // jammed: accumulators of a consumer
  llvm::SmallVector<LoopOp> rowLoops, columnLoops, depthLoops; // of a panel, or of a block; of a tile
  int64_t rows = 1, columns = 1; // of an accumulator
  int64_t stages = 0;
  bool isTf32 = false;
  int64_t blocks = 1;    // that a share has room for
  int64_t share = 1;     // steps
  int64_t rowGroups = 1; // of 64 rows in a panel: each consumer has one, or all have one

  int64_t numConsumers() { return *consumers.getTrip(); }
  int64_t numParts() const { return roundsOf(parts); }
  /// Work is cut where it does not come out even for all workers: their sums are kept and added up.
  bool isCut() const { return lists.getCut() || lists.getParts(); }
  /// Steps of a share are of the blocks of one column, 64 rows in all, and are gathered.
  bool isGathered() const { return lists.getWithin().has_value(); }
  bool splitsRows() const { return rowGroups > 1; }
  /// Steps of a share that one consumer multiplies.
  int64_t ownSteps() { return splitsRows() ? share : share / numConsumers(); }
  /// Rows, or columns, of a tile of an operand in shared memory: 128 bytes at the most.
  int64_t sideOf(int64_t most) const {
    int64_t line = mlir::getElementTypeOrSelf(product.left).isF32() ? 32 : 64;
    return isGathered() ? 64 : std::min(most, line);
  }
};

/// Erases a nest that others stand for; refuses the statement where they still take a number of it: one place of a tile.
llvm::LogicalResult eraseReplaced(mlir::Operation *nest, mlir::Operation *statement);
/// The nest goes so, with its layout's mark and all that it alone has used.
llvm::LogicalResult eraseNest(TileNest &nest, mlir::Operation *statement);
/// The marks of such a nest, or an error that says which one is missing.
llvm::FailureOr<TileNest> readTileNest(mlir::func::FuncOp function);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILENEST_H
