// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of tiles whose rows become columns.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_TRANSPOSETILE_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_TRANSPOSETILE_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// Two loops marked `vectorize`, `inner` right inside of `outer`, that copy an element each become one copy of a tile.
llvm::LogicalResult transposeTile(LoopOp outer, LoopOp inner);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_TRANSPOSETILE_H
