// SPDX-License-Identifier: Apache-2.0
/// \file
/// parallel for i: y[f(i)] += s  -->  parts of a sum, brought together in their order.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> RaceStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult RaceStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.require(getLoop(), "race", loc);
  if (failed(loop))
    return failure();
  if (getStrategy() != "order")
    return emitError(loc) << "race: no strategy '" << getStrategy() << "' has code yet; there is 'order'";
  if (!(*loop)->hasAttr("lacis.meets"))
    return emitError(loc) << "race: iterations of loop '" << getLoop() << "' do not meet in one output";
  (*loop)->setAttr("lacis.race", StringAttr::get(getContext(), getStrategy()));
  return success();
}
