// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that adds to a tile of what an operand's lower levels find of the output.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDTILE_H
#define LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDTILE_H

#include "PushedNest.h"

namespace lacis {

/// for i0: tile[i1] = init; for j, i1 in w: tile[i1] += w * x[j]; for i1: y[i0, i1] = finish(tile[i1])
class PushedTile : PushedNest {
public:
  using PushedNest::PushedNest;
  /// What is pushed has bounds, and few elements.
  bool fits() const;
  llvm::LogicalResult build(mlir::OpBuilder &b);

private:
  using Body = llvm::function_ref<llvm::LogicalResult(mlir::OpBuilder &)>;

  mlir::Value makeTile(mlir::OpBuilder &b);
  /// Loops over the tile; the body is at one of its elements, inside of the output.
  llvm::LogicalResult overTile(mlir::OpBuilder &b, Body body);
  llvm::LogicalResult begin(mlir::OpBuilder &b);
  llvm::LogicalResult finish(mlir::OpBuilder &b);
  /// Where in the tile the letters are.
  llvm::SmallVector<mlir::Value> place(mlir::OpBuilder &b);

  mlir::Value tile;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDTILE_H
