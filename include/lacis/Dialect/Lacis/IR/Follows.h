// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a value is computed from.
#ifndef LACIS_DIALECT_LACIS_IR_FOLLOWS_H
#define LACIS_DIALECT_LACIS_IR_FOLLOWS_H

#include "mlir/IR/Value.h"

namespace lacis {

/// Is `value`, or something that it is computed from, what `isSource` says? What many values share is looked at once.
bool followsFrom(mlir::Value value, llvm::function_ref<bool(mlir::Value)> isSource);
/// Is it computed from `source`?
bool followsFrom(mlir::Value value, mlir::Value source);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_FOLLOWS_H
