// SPDX-License-Identifier: Apache-2.0
/// \file
/// The dialect itself, without its operations.
#ifndef LACIS_DIALECT_LACIS_IR_LACISDIALECT_H
#define LACIS_DIALECT_LACIS_IR_LACISDIALECT_H

#include "lacis/Dialect/Lacis/IR/LacisInterfaces.h"

#include "lacis/Dialect/Lacis/IR/KindRegistry.h"

#include "mlir/IR/Dialect.h"

#include "lacis/Dialect/Lacis/IR/LacisDialect.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_LACISDIALECT_H
