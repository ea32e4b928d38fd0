// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: s[i]  -->  parallel for i: s[i], over the threads of a CPU or the blocks of a GPU.
#include "PositionUnits.h"

#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> ParallelStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult ParallelStepAttr::apply(Nest &nest, Location loc) const {
  if (std::string why = objectionToPositions(nest, getLoop()); !why.empty())
    return emitError(loc) << "parallel: " << why;
  FailureOr<LoopOp> loop = nest.requireFree(getLoop(), "parallel", loc);
  if (failed(loop))
    return failure();
  if (loop->getNumResults() != 0)
    return emitError(loc) << "parallel: loop '" << getLoop() << "' carries a sum; two threads would race for it; race with "
                          << "a strategy makes its iterations units: " << strategiesFor(*loop, nest) << " would do";
  loop->setBind(ParallelUnit::Parallel);
  (*loop)->setLoc(loc);
  return success();
}
