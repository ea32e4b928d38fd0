// SPDX-License-Identifier: Apache-2.0
/// \file
/// The schedule steps as attributes.
#ifndef LACIS_DIALECT_LACIS_STEPS_STEPS_H
#define LACIS_DIALECT_LACIS_STEPS_STEPS_H

#include "lacis/Dialect/Lacis/IR/Lacis.h"
#include "lacis/Dialect/Lacis/IR/StepInterface.h"

#define GET_ATTRDEF_CLASSES
#include "lacis/Dialect/Lacis/Steps/Steps.h.inc"

#endif // LACIS_DIALECT_LACIS_STEPS_STEPS_H
