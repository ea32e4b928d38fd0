// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loops over coordinates in the place of one over the positions under one parent.
#ifndef LACIS_LIB_DIALECT_LACIS_STEPS_POSITIONUNITS_H
#define LACIS_LIB_DIALECT_LACIS_STEPS_POSITIONUNITS_H

#include "lacis/Dialect/Lacis/IR/Nest.h"

namespace lacis {

/// The positions [from, from + length) under the parent whose first is `lo`, with the body of `entries`, which is left
/// empty.
LoopOp walkRun(mlir::OpBuilder &b, LevelLoopOp entries, const LoopName &name, mlir::Value lo, mlir::Value from,
               mlir::Value length, mlir::ValueRange carried);

/// How many coordinates the level of a loop has, before the nest.
mlir::Value sizeOfLevel(LevelLoopOp loop, mlir::Location loc);

/// Why the positions that a loop carries a sum over are not cut, or nothing.
std::string objectionToCuts(LevelLoopOp entries);

/// for j in row  -->  for j0 in ceil(row / factor): for j1 in factor; past the end the sum passes on. Answers j0.
LoopOp cutStrips(LevelLoopOp entries, int64_t factor, mlir::Location loc);

/// for j in row  -->  for j0 in parts: for j1 in its equal part of row. Answers j0.
LoopOp cutParts(LevelLoopOp entries, int64_t parts, mlir::Location loc);

/// Why no step takes the iterations of the loop `name` for units: it carries a sum over positions, whose number differs
/// from parent to parent. Nothing of any other loop.
std::string objectionToPositions(Nest &nest, llvm::StringRef name);

} // namespace lacis

#endif // LACIS_LIB_DIALECT_LACIS_STEPS_POSITIONUNITS_H
