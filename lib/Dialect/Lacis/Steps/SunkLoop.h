// SPDX-License-Identifier: Apache-2.0
/// \file
/// A loop over coordinates that sinks below the walk in it, whose sums become a tile.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_SUNKLOOP_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_SUNKLOOP_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// Why `loop`, which carries nothing, does not sink below the walk of `walk` in it; nothing where it does.
std::string objectionToSinking(LoopOp loop, LevelLoopOp walk);

/// for k: y[k] = sum over j of s  -->  for k: tile[k] = start; for j: for k: tile[k] += s; for k: y[k] = tile[k]
void sinkBelow(LoopOp loop, LevelLoopOp walk);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_SUNKLOOP_H
