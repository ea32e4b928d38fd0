// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where roles of the tiles stage meet.
#ifndef LACIS_DIALECT_LACIS_IR_RINGOPS_H
#define LACIS_DIALECT_LACIS_IR_RINGOPS_H

#include "lacis/Dialect/Lacis/IR/LacisOps.h"
#include "lacis/Dialect/Lacis/IR/LacisTypes.h"

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/RingOps.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_RINGOPS_H
