// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where rings and barriers of one kernel lie in shared memory.
#include "SharedMemory.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

FailureOr<SharedMemory> SharedMemory::plan(RolesOp roles, int64_t limit) {
  SharedMemory memory;
  memory.bytes = placeStages(roles, memory.rings);
  for (Operation *op : llvm::make_first_range(memory.rings))
    if (cast<RingOp>(op).getType().getStages() == 1)
      return op->emitError("tiles: a ring has at least two stages here: one is filled while the other is multiplied");
  int64_t barriers = countBarrierBytes(memory.rings);
  if (memory.bytes + barriers > limit)
    return roles.emitError("tiles: rings of ") << memory.bytes << " bytes are more than the " << limit - barriers
                                               << " bytes of shared memory; use fewer stages or smaller tiles";
  memory.bytes = placeBarriers(memory.rings, memory.bytes);
  return memory;
}
