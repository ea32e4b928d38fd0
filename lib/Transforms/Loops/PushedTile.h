// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that walks an operand in its order and adds to a tile of what its lower levels find of the output.
#ifndef LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDTILE_H
#define LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDTILE_H

#include "OwnedNest.h"

namespace lacis {

/// for i0: tile[i1] = init; for j, i1 in w: tile[i1] += w * x[j]; for i1: y[i0, i1] = finish(tile[i1])
class PushedTile : OwnedNest {
public:
  PushedTile(mlir::linalg::GenericOp root, mlir::OpOperand &operand, Letters letters, mlir::BlockArgument output,
             const llvm::StringMap<mlir::Value> &sizes);
  llvm::LogicalResult build(mlir::OpBuilder &b);

private:
  /// A digit that a level below the owner's finds, and the loop over it where the tile is filled or emptied.
  struct Pushed {
    Letter *letter;
    Digit digit;
    std::string name;
  };
  using Body = llvm::function_ref<llvm::LogicalResult(mlir::OpBuilder &)>;

  bool isPushed(Digit digit) const;
  void openOwner(mlir::OpBuilder &b, Letter &letter);
  mlir::Value makeTile(mlir::OpBuilder &b);
  /// Loops over the tile; the body is at one of its elements, inside of the output.
  llvm::LogicalResult overTile(mlir::OpBuilder &b, Body body);
  llvm::LogicalResult begin(mlir::OpBuilder &b);
  llvm::LogicalResult push(mlir::OpBuilder &b);
  llvm::LogicalResult finish(mlir::OpBuilder &b);
  /// Where in the tile the letters are.
  llvm::SmallVector<mlir::Value> place(mlir::OpBuilder &b);

  unsigned owners; // of the leading levels, whose digits have loops around the tile
  llvm::SmallVector<Pushed> pushed;
  mlir::Value tile;
};

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_LOOPS_PUSHEDTILE_H
