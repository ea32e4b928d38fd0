// SPDX-License-Identifier: Apache-2.0
/// \file
/// The attributes of the level kinds from outside.
#ifndef OUTSIDE_LEVELS_H
#define OUTSIDE_LEVELS_H

#include "lacis/Dialect/Lacis/IR/LacisDialect.h"

#define GET_ATTRDEF_CLASSES
#include "outside/OutsideLevels.h.inc"

#endif // OUTSIDE_LEVELS_H
