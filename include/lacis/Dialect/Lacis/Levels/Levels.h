// SPDX-License-Identifier: Apache-2.0
/// \file
/// The attributes of the level kinds. Only this room and tests name them; passes ask the interfaces.
#ifndef LACIS_DIALECT_LACIS_LEVELS_LEVELS_H
#define LACIS_DIALECT_LACIS_LEVELS_LEVELS_H

#include "lacis/Dialect/Lacis/IR/LacisDialect.h"

#define GET_ATTRDEF_CLASSES
#include "lacis/Dialect/Lacis/Levels/Levels.h.inc"

#endif // LACIS_DIALECT_LACIS_LEVELS_LEVELS_H
