// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operations that define level kinds.
#ifndef LACIS_DIALECT_LACIS_IR_KINDOPS_H
#define LACIS_DIALECT_LACIS_IR_KINDOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/KindOps.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_KINDOPS_H
