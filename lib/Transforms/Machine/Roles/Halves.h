// SPDX-License-Identifier: Apache-2.0
/// \file
/// Numbers of 16 bits, two neighbours in a register, alike on every architecture.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_ROLES_HALVES_H
#define LACIS_LIB_TRANSFORMS_MACHINE_ROLES_HALVES_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

inline bool isHalf(mlir::Type type) { return type.isBF16() || type.isF16(); }
/// The number, in both halves of a register.
mlir::Value twiceInWord(mlir::OpBuilder &b, mlir::Location loc, mlir::Value number);
/// One of the two numbers of a register.
mlir::Value halfOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value word, mlir::Type type, bool isHigh);
/// The numbers of registers, in order, as f32.
llvm::SmallVector<mlir::Value> widened(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange words, mlir::Type type);
/// What the map does last, if that is rounding of f32 to halves; or null.
mlir::arith::TruncFOp roundingOf(MapOp map);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_ROLES_HALVES_H
