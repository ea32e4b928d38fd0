// SPDX-License-Identifier: Apache-2.0
/// \file
/// Code coordinate: which n of m, in a few bits an entry. It has no code yet.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute CodeCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void CodeCoordinateAttr::printArguments(KindArguments &) const {}

bool CodeCoordinateAttr::isStored() const { return true; }
