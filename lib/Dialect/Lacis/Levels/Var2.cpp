// SPDX-License-Identifier: Apache-2.0
/// \file
/// Variable extent with gaps: positions [lo[parent], hi[parent]) under each parent.
#include "lacis/Dialect/Lacis/Levels/Levels.h"

using namespace mlir;
using namespace lacis;

Attribute Var2ExtentAttr::fromArguments(MLIRContext *context, KindArguments &arguments, EmitError emitError) {
  return getChecked(emitError, context, arguments.takeWidth("pos"));
}

void Var2ExtentAttr::printArguments(KindArguments &arguments) const { arguments.addWidth("pos", getPos()); }

LogicalResult Var2ExtentAttr::verify(EmitError emitError, IntegerType pos) { return verifyWidth("pos", pos, emitError); }

SmallVector<BufferSpec> Var2ExtentAttr::getBuffers() const { return {{"lo", getPos()}, {"hi", getPos()}}; }
