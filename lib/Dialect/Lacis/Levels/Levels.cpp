// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level kinds join the dialect, with the names of their common pairs.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#define GET_ATTRDEF_CLASSES
#include "lacis/Dialect/Lacis/Levels/Levels.cpp.inc"

static lacis::Room room([](lacis::LacisDialect &dialect) {
  dialect.addKinds<
#define GET_ATTRDEF_LIST
#include "lacis/Dialect/Lacis/Levels/Levels.cpp.inc"
      >();
  dialect.addAlias("dense", "full", "implicit");
  dialect.addAlias("compressed", "var", "crd");
  dialect.addAlias("packed", "fixed", "crd");
  dialect.addAlias("singleton", "one", "crd");
  dialect.addAlias("ragged", "var", "implicit");
  dialect.addAlias("bitmap", "var", "bitmap");
  dialect.addAlias("structured", "fixed", "code");
});
