// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a value is computed from.
#ifndef LACIS_DIALECT_LACIS_IR_FOLLOWS_H
#define LACIS_DIALECT_LACIS_IR_FOLLOWS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"

namespace lacis {

/// What an operation takes: its operands, and what its regions use from around it.
llvm::SetVector<mlir::Value> takenBy(mlir::Operation *op);
/// Is `value`, or something that it is computed from, what `isSource` says? What many values share is looked at once.
bool followsFrom(mlir::Value value, llvm::function_ref<bool(mlir::Value)> isSource);
/// Is it computed from `source`?
bool followsFrom(mlir::Value value, mlir::Value source);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_FOLLOWS_H
