// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where rings and barriers of one kernel lie in shared memory.
#include "SharedMemory.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

FailureOr<SharedMemory> SharedMemory::plan(RolesOp roles, int64_t limit) {
  constexpr int64_t alignment = 1024, barrierBytes = 8;
  SharedMemory memory;
  int64_t barriers = 0;
  roles.walk([&](AcquireOp acquire) {
    RingOp ring = ringOf(acquire.getRing());
    if (!memory.rings.insert({ring, RingPlace()}).second)
      return;
    RingPlace &place = memory.rings[ring];
    place.begin = memory.bytes;
    for (TileType tile : ring.getType().getTiles()) {
      place.tiles.push_back(place.stageBytes);
      place.stageBytes += llvm::alignTo(tile.getBytes(), alignment);
    }
    memory.bytes += place.stageBytes * ring.getType().getStages();
    barriers += 2 * barrierBytes * ring.getType().getStages();
  });
  if (memory.bytes + barriers > limit)
    return roles.emitError("tiles: rings of ") << memory.bytes << " bytes are more than the " << limit - barriers
                                               << " bytes of shared memory; use fewer stages or smaller tiles";
  for (auto &[ring, place] : memory.rings) {
    int64_t bytes = barrierBytes * cast<RingOp>(ring).getType().getStages();
    place.full = memory.bytes;
    place.empty = memory.bytes + bytes;
    memory.bytes += 2 * bytes;
  }
  return memory;
}
