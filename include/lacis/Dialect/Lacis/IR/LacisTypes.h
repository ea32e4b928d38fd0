// SPDX-License-Identifier: Apache-2.0
/// \file
/// The types of the dialect.
#ifndef LACIS_DIALECT_LACIS_IR_LACISTYPES_H
#define LACIS_DIALECT_LACIS_IR_LACISTYPES_H

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"

#define GET_TYPEDEF_CLASSES
#include "lacis/Dialect/Lacis/IR/LacisTypes.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_LACISTYPES_H
