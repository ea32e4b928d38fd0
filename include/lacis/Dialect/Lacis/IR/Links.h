// SPDX-License-Identifier: Apache-2.0
/// \file
/// Companion indices, whose last level links to the slots of what they are made of.
#ifndef LACIS_DIALECT_LACIS_IR_LINKS_H
#define LACIS_DIALECT_LACIS_IR_LINKS_H

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

namespace lacis {

/// The companion with links of this type.
FormatAttr withLinks(FormatAttr companion, mlir::IntegerType type);

} // namespace lacis

#endif // LACIS_DIALECT_LACIS_IR_LINKS_H
