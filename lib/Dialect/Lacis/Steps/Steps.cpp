// SPDX-License-Identifier: Apache-2.0
/// \file
/// The schedule steps join the dialect.
#include "lacis/Dialect/Lacis/Steps/Steps.h"
#include "lacis/Dialect/Lacis/IR/KindRegistry.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lacis;

#define GET_ATTRDEF_CLASSES
#include "lacis/Dialect/Lacis/Steps/Steps.cpp.inc"

static Room room([](LacisDialect &dialect) {
  dialect.addKinds<
#define GET_ATTRDEF_LIST
#include "lacis/Dialect/Lacis/Steps/Steps.cpp.inc"
      >();
});
