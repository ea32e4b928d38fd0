// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in 2: for j: s[i, j]  -->  for j: s[0, j]; s[1, j]
#include "lacis/Dialect/Lacis/IR/Limits.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> JamStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult JamStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.requireFree(getLoop(), "jam", loc);
  if (failed(loop))
    return failure();
  if (loop->getMeets())
    return emitError(loc) << "jam: iterations of loop '" << getLoop() << "' meet in one element of the output, one after "
                          << "another";
  if (loop->getNumResults() != 0)
    return emitError(loc) << "jam: loop '" << getLoop() << "' carries a sum; jam a loop around it, or unroll it";
  std::optional<int64_t> trip = pinTrip(*loop);
  if (!trip)
    return emitError(loc) << "jam: loop '" << getLoop() << "' has no constant trip count; split it first";
  if (*trip > kMostRounds)
    return emitError(loc) << "jam: " << *trip << " rounds of loop '" << getLoop() << "' are more than " << kMostRounds
                          << ", the most that stand side by side; split it first";
  loop->setJam(*trip);
  (*loop)->setLoc(loc);
  return success();
}
