// SPDX-License-Identifier: Apache-2.0
/// \file
/// A kind that the user defines, `@k`: the name is kept, its code comes with the operation that defines it.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute UserKindAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  if (FlatSymbolRefAttr symbol = arguments.takeSymbol())
    return get(context, symbol);
  emitError() << "level kind 'kind' needs a symbol: write '@name'";
  return {};
}

void UserKindAttr::printArguments(KindArguments &arguments) const { arguments.addSymbol(getSymbol()); }

SmallVector<BufferSpec> UserKindAttr::getBuffers() const { return {}; }

bool UserKindAttr::hasCode() const { return false; }

bool UserKindAttr::isPadded() const { return false; }
