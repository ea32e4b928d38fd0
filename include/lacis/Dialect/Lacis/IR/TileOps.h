// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operations of the tiles stage.
#ifndef LACIS_DIALECT_LACIS_IR_TILEOPS_H
#define LACIS_DIALECT_LACIS_IR_TILEOPS_H

#include "lacis/Dialect/Lacis/IR/LacisOps.h"
#include "lacis/Dialect/Lacis/IR/LacisTypes.h"

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/TileOps.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_TILEOPS_H
