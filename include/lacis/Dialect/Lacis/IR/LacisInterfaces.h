// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interfaces behind which level kinds stand.
#ifndef LACIS_DIALECT_LACIS_IR_LACISINTERFACES_H
#define LACIS_DIALECT_LACIS_IR_LACISINTERFACES_H

#include "lacis/Dialect/Lacis/IR/Digit.h"
#include "lacis/Dialect/Lacis/IR/KindArguments.h"
#include "lacis/Dialect/Lacis/IR/LevelBuilder.h"

#include "lacis/Dialect/Lacis/IR/CoordinateInterface.h.inc"

#include "lacis/Dialect/Lacis/IR/ExtentInterface.h.inc"

#include "lacis/Dialect/Lacis/IR/BindingInterface.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_LACISINTERFACES_H
