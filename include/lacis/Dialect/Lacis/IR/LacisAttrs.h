// SPDX-License-Identifier: Apache-2.0
/// \file
/// Formats, their levels and bindings, and sums of formats.
#ifndef LACIS_DIALECT_LACIS_IR_LACISATTRS_H
#define LACIS_DIALECT_LACIS_IR_LACISATTRS_H

#include "lacis/Dialect/Lacis/IR/Digit.h"
#include "lacis/Dialect/Lacis/IR/LacisDialect.h"

#include "mlir/IR/TensorEncoding.h"

namespace lacis {

enum class SizeKind { Constant, Argument, Product, Sum, CeilDiv, Within };

} // namespace lacis

#define GET_ATTRDEF_CLASSES
#include "lacis/Dialect/Lacis/IR/LacisAttrs.h.inc"

namespace lacis {

/// Reads `name = value`, a binding over the names before it.
mlir::Attribute parseBinding(mlir::AsmParser &parser, Names names);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_LACISATTRS_H
