// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which products are waited for in the block that begins them, and which rings such products alone read.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_AWAITED_H
#define LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_AWAITED_H

#include "../Roles/RoleBody.h"

#include "llvm/ADT/SetVector.h"

namespace lacis::hopper {

/// Of the consumer's role. A product is awaited where `complete` takes its result in the same block, and the places that
/// it reads are released behind that. All other products are under way until the stage behind theirs is multiplied.
class Awaited {
public:
  explicit Awaited(RolesOp roles);

  bool contains(MmaOp product) const { return products.contains(product); }
  /// Places of the ring are free where they are released.
  bool contains(RingOp ring) const { return rings.contains(ring); }
  /// Places of the ring are stored from, so they are free some time later.
  bool isStored(RingOp ring) const { return stored.contains(ring); }

private:
  bool isFreeWhereReleased(mlir::Operation *acquire) const;
  bool dropOthers(llvm::ArrayRef<mlir::Operation *> acquires);

  llvm::SmallPtrSet<mlir::Operation *, 8> products, rings, stored;
};

} // namespace lacis::hopper

#endif // LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_AWAITED_H
