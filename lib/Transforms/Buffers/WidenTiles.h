// SPDX-License-Identifier: Apache-2.0
/// \file
/// for b: t = tile(16): s(t[i])  -->  t = tile(16, b): for b: s(t[i, b])
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_WIDENTILES_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_WIDENTILES_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// The tiles that an iteration of `loop` has to itself become one tile of all `count` iterations, before the loop.
void widenTiles(LoopOp loop, int64_t count);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_WIDENTILES_H
