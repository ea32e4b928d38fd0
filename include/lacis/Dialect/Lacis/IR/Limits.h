// SPDX-License-Identifier: Apache-2.0
/// \file
/// How much the steps of a schedule may ask for. Of code: beyond it a kernel takes minutes to compile, and is no faster.
#ifndef LACIS_DIALECT_LACIS_IR_LIMITS_H
#define LACIS_DIALECT_LACIS_IR_LIMITS_H

#include <cstdint>

namespace lacis {

/// Rounds that `unroll` and `jam` put side by side, of a loop and the loops around it together. The body of a loop has
/// tens of instructions and the instruction cache holds some 10,000.
inline constexpr int64_t kMostRounds = 1024;

/// Lanes of `vectorize`: the registers of one thread hold no more (32 of 16 floats on a CPU, 255 on a GPU).
inline constexpr int64_t kMostLanes = 512;

/// Rounds that `pipeline` loads ahead, in registers or in stages of shared memory, of which 227 KB hold 227 of 1 KB.
inline constexpr int64_t kMostStages = 256;

/// Coordinates of a strip that `split` cuts: positions and strips are counted in 32 bits where the arrays allow it.
inline constexpr int64_t kMostInStrip = int64_t(1) << 30;

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_LIMITS_H
