// SPDX-License-Identifier: Apache-2.0
/// \file
/// How the parts of a sum that several shares hold are brought together.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_RACESTRATEGIES_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_RACESTRATEGIES_H

#include "lacis/Dialect/Lacis/Steps/Steps.h"

namespace lacis {

/// Each part is added to the output itself, as it arrives.
llvm::LogicalResult addAtomically(LoopOp shares, Nest &nest, mlir::Location loc);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_RACESTRATEGIES_H
