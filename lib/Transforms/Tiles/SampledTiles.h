// SPDX-License-Identifier: Apache-2.0
/// \file
/// A product sampled on a pattern, whose loops are marked, becomes roles.
#ifndef LACIS_LIB_TRANSFORMS_TILES_SAMPLEDTILES_H
#define LACIS_LIB_TRANSFORMS_TILES_SAMPLEDTILES_H

#include "TileNest.h"
#include "lacis/Dialect/Lacis/IR/Product.h"

namespace lacis {

/// A sampled product with all its marks. A worker's item is a share: neighbouring steps of one panel of the layout.
struct SampledNest {
  Product product;
  TileLayout layout;
  LoopOp consumers;       // bound to warpgroups
  llvm::SmallVector<LoopOp> rowLoops, columnLoops, depthLoops; // of a tile
  int64_t depth = 1;      // of a stage
  int64_t stages = 0;
  int64_t blocks = 1;     // that a share has room for
  int64_t share = 1;      // steps
  int64_t rowGroups = 1;  // of 64 rows in a panel: each consumer has one, or all have one
  bool isTf32 = false;
  int64_t parts = 0;      // that the sum of a share is cut into, at the most; 0: it is not
  int64_t within = 0;     // columns of a share whose steps are gathered: blocks of one column, 64 rows in all

  int64_t numConsumers() { return *consumers.getTrip(); }
  bool isGathered() const { return within != 0; }
  bool consumersHaveRows() const { return llvm::is_contained(rowLoops, consumers); }
  bool splitsRows() const { return rowGroups > 1; }
  /// Steps that one consumer multiplies.
  int64_t ownSteps() { return splitsRows() ? share : share / numConsumers(); }
  /// Those of all consumers.
  int64_t numSteps() { return numConsumers() * ownSteps(); }
  /// Columns of a tile of either operand in shared memory: 128 bytes at the most.
  int64_t mostColumns() const { return mlir::getElementTypeOrSelf(product.left).isF32() ? 32 : 64; }
  int64_t leftColumns() const { return isGathered() ? 64 : std::min<int64_t>(layout.rows, mostColumns()); }
  int64_t rightColumns() const { return isGathered() ? 64 : std::min<int64_t>(layout.step, mostColumns()); }
};

/// The marks of such a nest, or an error that says which one is missing.
llvm::FailureOr<SampledNest> readSampledNest(mlir::func::FuncOp function);
/// for w in entries: w = sum over k of a b  -->  for share in the worker's list: producer: for k: load; consumers:
/// for k: multiply; store the blocks of the share.
llvm::LogicalResult formSampledTiles(mlir::func::FuncOp function);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_SAMPLEDTILES_H
