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
  llvm::SmallVector<int64_t> tiles; // within a stage
};

using Rings = llvm::MapVector<mlir::Operation *, RingPlace>;

/// Places the stages of all rings of `roles`, from 0 on; the first byte behind them.
int64_t placeStages(RolesOp roles, Rings &rings);
/// The bytes of all barriers of the rings.
int64_t countBarrierBytes(const Rings &rings);
/// Places the barriers from `begin` on; the first byte behind them.
int64_t placeBarriers(Rings &rings, int64_t begin);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_ROLES_RINGS_H
