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

  int64_t tilesPerStep() const { return capacity.value_or(height * width); }
  /// The tile as it lies in memory.
  std::pair<int64_t, int64_t> shape() const { return transposed ? std::pair(columns, rows) : std::pair(rows, columns); }
  /// Reads the sizes from the format, whose axes have the letters `m` and `k` at these numbers.
  llvm::LogicalResult read(unsigned m, unsigned k);
};

/// How many rounds nested loops of constant counts have together.
int64_t roundsOf(llvm::ArrayRef<LoopOp> loops);

/// A product with all its marks.
struct TileNest {
  Product product;
  LoopOp panels, tiles, consumers;               // the outermost two, and the one bound to warpgroups
  llvm::SmallVector<LoopOp> parts;               // jammed: accumulators of a consumer
  llvm::SmallVector<LoopOp> rowLoops;            // of a panel
  LoopOp column;                                 // of a tile of the dense axis
  int64_t rows = 1, columns = 1;                 // of an accumulator
  int64_t stages = 0, raster = 0, groups = 0;
  int64_t cut = 0; // up to so many tiles of the dense axis long panels are cut
  bool isTf32 = false;
  TileLayout layout;

  int64_t numConsumers() { return *consumers.getTrip(); }
  int64_t numParts() const { return roundsOf(parts); }
};

/// Does any loop of the function ask for products of tiles?
bool isTensorized(mlir::func::FuncOp function);
/// Are its products in TF32? Fails where they are not of float32, as `operand` is.
llvm::FailureOr<bool> readTf32(mlir::func::FuncOp function, mlir::Value operand);
/// The marks of such a nest, or an error that says which one is missing.
llvm::FailureOr<TileNest> readTileNest(mlir::func::FuncOp function);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_TILENEST_H
