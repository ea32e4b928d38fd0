// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a nest asks the bindings of a format.
#ifndef LACIS_DIALECT_LACIS_IR_BINDINGOPS_H
#define LACIS_DIALECT_LACIS_IR_BINDINGOPS_H

#include "lacis/Dialect/Lacis/IR/LacisOps.h"

#define GET_OP_CLASSES
#include "lacis/Dialect/Lacis/IR/BindingOps.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_BINDINGOPS_H
