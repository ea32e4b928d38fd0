// SPDX-License-Identifier: Apache-2.0
/// \file
/// Shared memory that one block of a GPU may have.
#ifndef LACIS_DIALECT_LACIS_IR_BLOCKMEMORY_H
#define LACIS_DIALECT_LACIS_IR_BLOCKMEMORY_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace lacis {

/// Bytes on the targets whose names begin so.
struct BlockMemory {
  llvm::StringLiteral target;
  int64_t bytes;
};

/// Of sm_90, and of sm_100 to sm_110.
inline constexpr int64_t kMostBlockBytes = 227 << 10;

/// The first beginning that fits a target is its own (CUDA Programming Guide, technical specifications by compute
/// capability).
inline constexpr BlockMemory kBlockMemory[] = {
    {"cuda:sm_86", 99 << 10},          {"cuda:sm_89", 99 << 10},           {"cuda:sm_12", 99 << 10},
    {"cuda:sm_9", kMostBlockBytes},    {"cuda:sm_10", kMostBlockBytes},    {"cuda:sm_11", kMostBlockBytes},
    {"cuda:sm_", 163 << 10},
};

/// 0 on a target without shared memory.
inline int64_t blockBytesOf(llvm::StringRef target) {
  const BlockMemory *found = llvm::find_if(kBlockMemory, [&](auto entry) { return target.starts_with(entry.target); });
  return found == std::end(kBlockMemory) ? 0 : found->bytes;
}

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_BLOCKMEMORY_H
