// SPDX-License-Identifier: Apache-2.0
/// \file
/// Computed coordinate: a function of the position and the parent. It has no code yet.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute FnCoordinateAttr::fromArguments(MLIRContext *context, KindArguments &, EmitError) { return get(context); }

void FnCoordinateAttr::printArguments(KindArguments &) const {}
