// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where rings and barriers of one kernel lie in shared memory.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_SHAREDMEMORY_H
#define LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_SHAREDMEMORY_H

#include "../Roles/Accumulators.h"
#include "../Roles/Rings.h"

namespace lacis::ampere {

constexpr int64_t kLanes = 32;                     // of a warp
constexpr int64_t kCopyThreads = 128;              // of all producers of products: registers go to four warps at a time
constexpr int64_t kGroupThreads = kWarps * kLanes; // of a consumer

/// Bytes from the start of dynamic shared memory.
struct SharedMemory : GroupRings {
  int64_t copyThreads = 0; // of a group
  int64_t bytes = 0;

  /// Fails, with the sizes, where it is more than `limit`. Who copies is left open.
  static llvm::FailureOr<SharedMemory> plan(RolesOp roles, int64_t limit);
};

} // namespace lacis::ampere

#endif // LACIS_LIB_TRANSFORMS_MACHINE_AMPERE_SHAREDMEMORY_H
