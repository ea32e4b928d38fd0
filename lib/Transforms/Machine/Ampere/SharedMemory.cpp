// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where rings and barriers of one kernel lie in shared memory.
#include "SharedMemory.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

FailureOr<SharedMemory> SharedMemory::plan(RolesOp roles, int64_t limit) {
  SharedMemory memory;
  auto groups = static_cast<int64_t>(roles.getGroups());
  memory.groupStages = placeStages(roles, memory.rings);
  memory.groupBarriers = countBarrierBytes(memory.rings);
  memory.bytes = groups * memory.groupStages;
  int64_t barriers = groups * memory.groupBarriers;
  if (memory.bytes + barriers > limit)
    return roles.emitError("tiles: rings of ") << memory.bytes << " bytes are more than the " << limit - barriers
                                               << " bytes of shared memory; use fewer stages or smaller tiles";
  memory.bytes = placeBarriers(memory.rings, memory.bytes) + (groups - 1) * memory.groupBarriers;
  return memory;
}
