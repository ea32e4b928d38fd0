// SPDX-License-Identifier: Apache-2.0
/// \file
/// What of a format follows from its bindings.
#ifndef LACIS_DIALECT_LACIS_IR_BINDINGCODE_H
#define LACIS_DIALECT_LACIS_IR_BINDINGCODE_H

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

namespace lacis {

/// The names that follow from a binding where `known` are known; none where it would have to agree with what is known.
llvm::SmallVector<unsigned> followingNames(mlir::Attribute binding, llvm::ArrayRef<bool> known);

/// Where the coordinates of `axes` are known, a walk of the levels finds each other name once, by a level or through a
/// binding.
bool isFoundOnce(FormatAttr format, llvm::ArrayRef<unsigned> axes);
/// The full name of the array that binding `number` stores; empty where it stores none.
std::string bindingArray(FormatAttr format, unsigned number);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_BINDINGCODE_H
