// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interfaces behind which level kinds and bindings stand.
#ifndef LACIS_DIALECT_LACIS_IR_LACISINTERFACES_H
#define LACIS_DIALECT_LACIS_IR_LACISINTERFACES_H

#include "lacis/Dialect/Lacis/IR/Digit.h"
#include "lacis/Dialect/Lacis/IR/KindArguments.h"
#include "lacis/Dialect/Lacis/IR/LevelBuilder.h"

#include "lacis/Dialect/Lacis/IR/CoordinateInterface.h.inc"

#include "lacis/Dialect/Lacis/IR/ExtentInterface.h.inc"

namespace lacis {

/// Binding `number` of the format of `tensor` at its coordinate `own`, and a name that follows from it.
struct BoundName {
  mlir::Value tensor;
  unsigned number, name;
  mlir::Value own;
};

struct DerivedArray;
struct DerivedSource;

} // namespace lacis

#include "lacis/Dialect/Lacis/IR/BindingInterface.h.inc"

#include "lacis/Dialect/Lacis/IR/DerivedInterface.h.inc"

#endif // LACIS_DIALECT_LACIS_IR_LACISINTERFACES_H
