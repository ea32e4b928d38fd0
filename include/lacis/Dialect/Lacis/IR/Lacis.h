// SPDX-License-Identifier: Apache-2.0
/// \file
/// The whole dialect: attributes, types, operations.
#ifndef LACIS_DIALECT_LACIS_IR_LACIS_H
#define LACIS_DIALECT_LACIS_IR_LACIS_H

#include "lacis/Dialect/Lacis/IR/KindOps.h"
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"
#include "lacis/Dialect/Lacis/IR/LacisDialect.h"
#include "lacis/Dialect/Lacis/IR/LacisOps.h"
#include "lacis/Dialect/Lacis/IR/LacisTypes.h"
#include "lacis/Dialect/Lacis/IR/RingOps.h"
#include "lacis/Dialect/Lacis/IR/TileOps.h"

namespace lacis {

/// Registers the dialect and every upstream dialect that a stage may hold.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_LACIS_H
