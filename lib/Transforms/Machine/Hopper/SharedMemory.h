// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where rings, store buffers and barriers of one kernel lie in shared memory.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_SHAREDMEMORY_H
#define LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_SHAREDMEMORY_H

#include "../Roles/Rings.h"

namespace lacis::hopper {

constexpr int64_t kGroupThreads = 128;   // a warpgroup: the producer, or one consumer
constexpr int64_t kStoreRows = 64;       // of the accumulator, in a box that is stored
constexpr int64_t kMostArrivals = (1 << 20) - 1; // that a phase of a barrier can ask for

/// Bytes from the start of dynamic shared memory.
struct SharedMemory : GroupRings {
  int64_t stores = 0, buffersPerConsumer = 0;
  bool inTurns = true;       // each store begins with the buffer after the one before's last
  int64_t storeColumns = 64; // of the accumulator, in a box of 16-bit elements
  int64_t idle = 0;          // a barrier that nobody waits for, so it ends no phase
  int64_t bytes = 0;
  bool isFull = false; // what rounds keep leaves no registers for addresses that are known before them

  int64_t storeBytes() const { return kStoreRows * storeColumns * 2; }
  /// Fails, with the sizes, where it does not fit.
  static llvm::FailureOr<SharedMemory> plan(RolesOp roles);
};

} // namespace lacis::hopper

#endif // LACIS_LIB_TRANSFORMS_MACHINE_HOPPER_SHAREDMEMORY_H
