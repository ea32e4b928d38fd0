// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where the stages and barriers of rings lie in shared memory.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_ROLES_RINGS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_ROLES_RINGS_H

#include "RoleBody.h"

#include "llvm/ADT/MapVector.h"

namespace lacis {

constexpr int64_t kBarrierBytes = 8;

struct RingPlace {
  int64_t begin = 0, stageBytes = 0;
  int64_t full = 0, empty = 0;      // the first of `stages` barriers
  llvm::SmallVector<int64_t> tiles; // within a stage; of a vector, where that of the first stage lies among the barriers
};

/// Tiles of one row need no alignment for products, and stages would grow by more than the row: they lie apart.
inline bool isVector(TileType tile) { return tile.getRows() == 1 && !tile.isList(); }
/// From the vector of one stage to that of the next.
inline int64_t vectorBytes(TileType tile) { return llvm::alignTo(tile.getBytes(), 128); }

using Rings = llvm::MapVector<mlir::Operation *, RingPlace>;

/// The rings of the first group of roles, and how many bytes behind those the next group has its own.
struct GroupRings {
  Rings rings;
  int64_t groupStages = 0, groupBarriers = 0;

  /// `group` becomes the one of this number.
  void place(mlir::OpBuilder &b, Warpgroup &group, mlir::Value number) const;
};

/// Places the stages of all rings of `roles`, from 0 on; the first byte behind them.
int64_t placeStages(RolesOp roles, Rings &rings);
/// The bytes of all barriers and vectors of the rings.
int64_t countBarrierBytes(const Rings &rings);
/// Places the vectors and the barriers from `begin` on; the first byte behind them.
int64_t placeBarriers(Rings &rings, int64_t begin);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_ROLES_RINGS_H
