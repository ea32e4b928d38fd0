// SPDX-License-Identifier: Apache-2.0
/// \file
/// What roles read of arguments and arrays in memory alike on every architecture.
#ifndef LACIS_LIB_TRANSFORMS_MACHINE_ROLES_READS_H
#define LACIS_LIB_TRANSFORMS_MACHINE_ROLES_READS_H

#include "lacis/Transforms/Passes.h"

namespace lacis {

/// The element at `index`, of `type`; 0 unless `inside`.
mlir::Value elementOr0(mlir::OpBuilder &b, mlir::Location loc, mlir::Value array, mlir::Value index, mlir::Type type,
                       mlir::Value inside);
/// Two neighbouring bytes of a bitmap, `offset` bytes behind `base`, as f32.
std::array<mlir::Value, 2> entryPair(mlir::OpBuilder &b, mlir::Location loc, mlir::Value base, int32_t offset);

} // namespace lacis

#endif // LACIS_LIB_TRANSFORMS_MACHINE_ROLES_READS_H
