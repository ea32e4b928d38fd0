// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where rings, store buffers and barriers of one kernel lie in shared memory.
#include "SharedMemory.h"
#include "lacis/Dialect/Lacis/IR/BlockMemory.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

FailureOr<SharedMemory> SharedMemory::plan(RolesOp roles) {
  SharedMemory memory;
  int64_t groups = roles.getGroups();
  memory.groupStages = placeStages(roles, memory.rings);
  memory.groupBarriers = countBarrierBytes(memory.rings);
  memory.bytes = groups * memory.groupStages;
  int64_t barriers = groups * memory.groupBarriers + kBarrierBytes;
  SmallVector<int64_t> stores; // columns of each
  roles.walk([&](Operation *op) { memory.isFull |= isa<AdvanceOp, ReadColumnsOp>(op); });
  constexpr int64_t leastColumns = 16;
  roles.walk([&](Operation *op) {
    auto store = dyn_cast<StoreTileOp>(op);
    if (!isa<StoreTileOp, StoreBlocksOp>(op) || (store && store.getThrough()))
      return;
    stores.push_back(cast<AccType>(op->getOperand(0).getType()).getColumns());
    while (memory.storeColumns > leastColumns && stores.back() % memory.storeColumns != 0)
      memory.storeColumns /= 2;
  });
  int64_t consumers = groups * static_cast<int64_t>(roles.getConsumers()), left = kMostBlockBytes - memory.bytes - barriers;
  memory.stores = memory.bytes;
  while (memory.storeColumns > leastColumns && consumers * memory.storeBytes() > left)
    memory.storeColumns /= 2;
  bool hasStores = !stores.empty();
  memory.buffersPerConsumer = hasStores ? std::min<int64_t>(2, left / (consumers * memory.storeBytes())) : 0;
  if (left < 0 || (hasStores && memory.buffersPerConsumer < 1))
    return roles.emitError("tiles: rings of ")
           << memory.bytes << " bytes and " << (hasStores ? consumers * memory.storeBytes() : 0)
           << " bytes for stores are more than the " << kMostBlockBytes - barriers
           << " bytes of shared memory; use fewer stages or smaller tiles";
  memory.inTurns = llvm::all_of(stores, [&](int64_t columns) {
    return columns / memory.storeColumns % memory.buffersPerConsumer == 0; // all buffers are written equally often
  });
  int64_t first = placeBarriers(memory.rings,
                                memory.stores + memory.buffersPerConsumer * consumers * memory.storeBytes());
  memory.idle = first + (groups - 1) * memory.groupBarriers;
  memory.bytes = memory.idle + kBarrierBytes;
  return memory;
}
