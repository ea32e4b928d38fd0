// SPDX-License-Identifier: Apache-2.0
/// \file
/// What brings two values of a sum together.
#ifndef LACIS_LIB_TRANSFORMS_BUFFERS_COMBINER_H
#define LACIS_LIB_TRANSFORMS_BUFFERS_COMBINER_H

#include "lacis/Transforms/Passes.h"

#include <optional>

namespace lacis {

/// What an operation that adds a value to a sum (or takes the larger, …) does to the lanes of a vector.
std::optional<mlir::vector::CombiningKind> kindOf(mlir::Operation *combiner);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_BUFFERS_COMBINER_H
