// SPDX-License-Identifier: Apache-2.0
/// \file
/// What brings two values of a sum together.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_COMBINER_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_COMBINER_H

#include "lacis/Dialect/Lacis/IR/Reduction.h"
#include "lacis/Transforms/Passes.h"

namespace lacis {

/// How the lanes of a vector are brought together.
mlir::vector::CombiningKind kindOf(Reduction reduction);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_COMBINER_H
