// SPDX-License-Identifier: Apache-2.0
/// \file
/// for b in 8: y[b] += a * x[b]  -->  y[0:8] += a * x[0:8]
#include "lacis/Dialect/Lacis/IR/Limits.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> VectorizeStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult VectorizeStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.requireFree(getLoop(), "vectorize", loc);
  if (failed(loop))
    return failure();
  if (loop->getMeets())
    return emitError(loc) << "vectorize: iterations of loop '" << getLoop() << "' meet in one element of the output, one after "
                          << "another";
  if (getWidth() <= 0 || pinTrip(*loop) != getWidth())
    return emitError(loc) << "vectorize: loop '" << getLoop() << "' does not run exactly " << getWidth()
                          << " times; split it first";
  if (getWidth() > kMostLanes)
    return emitError(loc) << "vectorize: " << getWidth() << " lanes of loop '" << getLoop() << "' are more than "
                          << kMostLanes << ", the most of one vector; split it first";
  loop->setVectorize(getWidth());
  (*loop)->setLoc(loc);
  return success();
}
