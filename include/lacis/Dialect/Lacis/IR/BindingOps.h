// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a nest asks the bindings of a format.
#ifndef LACIS_DIALECT_LACIS_IR_BINDINGOPS_H
#define LACIS_DIALECT_LACIS_IR_BINDINGOPS_H

#include "lacis/Dialect/Lacis/IR/KindOps.h"
#include "lacis/Dialect/Lacis/IR/LacisOps.h"

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/BindingOps.h.inc"

namespace lacis {

/// Arithmetic and 'scf' loops, which read and write nothing: what users' code is made of.
bool isArithmetic(mlir::Operation *op);

/// The coordinates of the axes that `binding` computes from `own`, in 64 bits: its code is put here.
llvm::SmallVector<mlir::Value> putInverse(mlir::OpBuilder &b, mlir::Location loc, BindingOp binding, mlir::Value own);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_BINDINGOPS_H
