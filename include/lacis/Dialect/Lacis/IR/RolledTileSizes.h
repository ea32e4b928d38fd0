// SPDX-License-Identifier: Apache-2.0
/// \file
/// Sizes of the tiles that statements of a rolled loop become.
#ifndef LACIS_DIALECT_LACIS_IR_ROLLEDTILESIZES_H
#define LACIS_DIALECT_LACIS_IR_ROLLEDTILESIZES_H

#include <cstdint>

namespace lacis {

/// Rows of a tile are those of one warpgroup; its columns are a line of 128 bytes.
inline constexpr int64_t kTileSide = 64;
/// Columns of a tile that half as many rounds take, where its registers are there: two lines.
inline constexpr int64_t kWideTile = 128;
/// Columns of all sums that two consumers with the rows of a tile each carry, who share what a wide round brings.
inline constexpr int64_t kSharedSums = 128;
/// Shared memory of a block, of which two share a processor: while one computes exponentials the other multiplies. It has
/// the rows of a tile and what one round brings.
inline constexpr int64_t kRolledBytes = 112 << 10;

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_ROLLEDTILESIZES_H
