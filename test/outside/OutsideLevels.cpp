// SPDX-License-Identifier: Apache-2.0
/// \file
/// The level kinds from outside join the dialect.
#include "OutsideLevels.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#define GET_ATTRDEF_CLASSES
#include "outside/OutsideLevels.cpp.inc"

using lacis::EvenExtentAttr;
using lacis::MirroredCoordinateAttr;
using lacis::RunsCoordinateAttr;
static lacis::Room room([](lacis::LacisDialect &dialect) {
  dialect.addKinds<EvenExtentAttr, MirroredCoordinateAttr, RunsCoordinateAttr>();
});
