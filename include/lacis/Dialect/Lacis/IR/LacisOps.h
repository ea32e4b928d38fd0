// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operations of the lacis dialect.
#ifndef LACIS_DIALECT_LACIS_IR_LACISOPS_H
#define LACIS_DIALECT_LACIS_IR_LACISOPS_H

#include "lacis/Dialect/Lacis/IR/LoopPath.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace lacis {
class MapOp;
class RolesOp;

/// The format of a tensor, or null.
FormatAttr formatOf(mlir::Value tensor);
} // namespace lacis

#include "lacis/Dialect/Lacis/IR/LoopOpInterface.h.inc"

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/LacisOps.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_LACISOPS_H
