// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the tensor cores read a tile.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_WALK_H
#define LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_WALK_H

#include "../Roles/RoleBody.h"
#include "Instructions.h"

namespace lacis::hopper {

/// How the tensor cores step through a tile; addresses are in units of 16 bytes.
struct Walk {
  int64_t line;  // bytes of a row
  int64_t depth; // of the contraction in one tile
  int64_t once;  // of the contraction in one product: 32 bytes
  int64_t tile;  // from one tile of a list to the next
  int64_t step;  // from one product to the next
  bool transposed;

  Walk(TileType type, bool transposed)
      : line(lineBytes(type)), depth(type.getDepth(transposed)), once(type.getElementType().isF32() ? 8 : 16),
        tile(bytesPerTile(type) >> 4), step(transposed ? line : 2), transposed(transposed) {}

  int64_t steps() const { return depth / once; }
  /// Where a product begins in a list whose tiles follow each other along the contraction, or in one tile.
  int64_t at(int64_t number) const { return number / steps() * tile + number % steps() * step; }
  /// Eight rows follow each other; transposed tiles, which stand side by side, lie one after another.
  uint64_t descriptorBits() const {
    uint64_t layout = line == 128 ? 1 : line == 64 ? 2 : 3, beside = transposed ? tile : 1;
    return beside << 16 | uint64_t(8 * line >> 4) << 32 | layout << 62;
  }
};

/// The descriptor of what begins at an address of shared memory.
mlir::Value descriptor(mlir::OpBuilder &b, mlir::Location loc, Instructions &i, mlir::Value address, const Walk &walk);
/// The tensor cores read rows of 32, 64 or 128 bytes, in groups of eight, and 16 elements of the contraction at once.
llvm::LogicalResult checkOperand(mlir::Operation *op, TileType tile, bool transposed);

} // namespace lacis::hopper

#endif // LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_WALK_H
