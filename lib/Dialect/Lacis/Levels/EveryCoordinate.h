// SPDX-License-Identifier: Apache-2.0
/// \file
/// Extents with a position for every coordinate: where it is follows by arithmetic.
#ifndef LACIS_LIB_DIALECT_LACIS_LEVELS_EVERYCOORDINATE_H
#define LACIS_LIB_DIALECT_LACIS_LEVELS_EVERYCOORDINATE_H

#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace lacis::every_coordinate {

/// How many positions lie below so many parents, and where those of parent number `parents` begin.
inline mlir::Value slots(LevelBuilder &level, mlir::Value parents) {
  return mlir::arith::MulIOp::create(level.b, level.loc, parents, level.size());
}

inline mlir::Value locate(LevelBuilder &level, mlir::Value parent, mlir::Value crd) {
  return mlir::arith::AddIOp::create(level.b, level.loc, slots(level, parent), crd);
}

inline std::pair<mlir::Value, mlir::Value> bounds(LevelBuilder &level, mlir::Value parent) {
  mlir::Value lo = slots(level, parent);
  return {lo, mlir::arith::AddIOp::create(level.b, level.loc, lo, level.size())};
}

} // namespace lacis::every_coordinate

#endif // LACIS_LIB_DIALECT_LACIS_LEVELS_EVERYCOORDINATE_H
