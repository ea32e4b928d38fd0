// SPDX-License-Identifier: Apache-2.0
/// \file
/// A loop whose rounds are statements of tiles becomes roles.
#ifndef LACIS_LIB_TRANSFORMS_TILES_STATEMENTROLES_H
#define LACIS_LIB_TRANSFORMS_TILES_STATEMENTROLES_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace lacis {

/// The loop of which `tensorize` said that its rounds are statements of tiles, or null.
LevelLoopOp roundOfStatements(mlir::func::FuncOp function);
/// for rows: first; for j in row: statements; last  -->  producer: for rows: load; for j: load; consumers: for rows: first;
/// for j: statements on tiles; last
llvm::LogicalResult formStatementRoles(mlir::func::FuncOp function, LoopOpInterface round);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_TILES_STATEMENTROLES_H
