// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the partial results of a sum, on lanes of a vector or of a warp, are brought together.
#ifndef LACIS_LIB_TRANSFORMS_COMBINE_H
#define LACIS_LIB_TRANSFORMS_COMBINE_H

#include "lacis/Transforms/Passes.h"

#include <optional>

namespace lacis {

/// What an operation that adds a value to a sum (or takes the larger, …) does to the lanes of a vector.
std::optional<mlir::vector::CombiningKind> kindOf(mlir::Operation *combiner);

/// Runs one coordinate of a loop that carries a sum on each lane of a warp: every lane sums from the neutral element,
/// then the sums of all lanes are exchanged and added in a fixed order.
llvm::LogicalResult inlineLaneSum(mlir::scf::ForOp loop, mlir::Value lane);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_COMBINE_H
