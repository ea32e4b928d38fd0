// SPDX-License-Identifier: Apache-2.0
/// \file
/// The iterations of a loop that carries a sum as units, each with a sum of its own.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_CARRIEDUNITS_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_CARRIEDUNITS_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// Why the iterations of the loop are no units, or nothing.
std::string objectionToUnits(LoopOp loop);

/// A copy of the nest that `loop` is in, at `b`; its loops are named after `loop`: `k0.b`. Answers the copy of `loop`.
LoopOp copyNest(mlir::OpBuilder b, LoopOp loop);

/// for k: c += s; y = c  -->  for unit in count: c = s; keep(unit, c); y = c. Each unit sums from the neutral element. The
/// units are the innermost loop of the nest, which keeps the name.
void makeUnits(LoopOp loop, mlir::Value count,
               llvm::function_ref<void(mlir::OpBuilder &b, mlir::Value unit, mlir::Value sum)> keep);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_CARRIEDUNITS_H
