// SPDX-License-Identifier: Apache-2.0
/// \file
/// Boxes of operands that products take, which rings bring.
#ifndef LACIS_LIB_TRANSFORMS_TILES_STAGEDBOXES_H
#define LACIS_LIB_TRANSFORMS_TILES_STAGEDBOXES_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"

#include "llvm/ADT/MapVector.h"

namespace lacis {

/// A box of an operand that a product takes: rings of its own bring it.
struct StagedBox {
  ReadOp read;
  bool inRound = false;      // it is another one in each round of the loop that loads ahead
  bool isTransposed = false; // its rows lie along the sum
  TileType tile;
  mlir::Value place;         // of its ring, as far as the role has come
  mlir::Value held;          // the tile, where it is not of a round
};

/// The boxes of a nest, in the order in which products take them.
using StagedBoxes = llvm::MapVector<mlir::Operation *, StagedBox>;

/// The boxes of which a loop moves the places on, or those alone that its rounds fill.
llvm::SmallVector<StagedBox *> placesOf(StagedBoxes &boxes, bool inRound);
void setPlaces(llvm::ArrayRef<StagedBox *> boxes, mlir::ValueRange places);
llvm::SmallVector<mlir::Value> valuesOf(llvm::ArrayRef<StagedBox *> boxes);
/// Where a box begins: of several axes of a batch it is the number of the matrix.
llvm::SmallVector<mlir::Value> placeOfBox(mlir::OpBuilder &b, mlir::Value tensor, llvm::ArrayRef<mlir::Value> indices);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_STAGEDBOXES_H
