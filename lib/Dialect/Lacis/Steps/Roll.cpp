// SPDX-License-Identifier: Apache-2.0
/// \file
/// for j: m; for j: l, o of m  -->  for j: one round of all, in which sums for a smaller maximum are rescaled.
///
/// The pass that makes loops of statements asks `getRolledLoop`; here is only checked that it made such a loop.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> RollStepAttr::namedLoops() const { return {getLoop()}; }

bool RollStepAttr::comesFirst() const { return true; }

StringRef RollStepAttr::getRolledLoop() const { return getLoop(); }

std::optional<int64_t> RollStepAttr::getRoundColumns() const { return getColumns(); }

LogicalResult RollStepAttr::apply(Nest &nest, Location loc) const {
  bool isRolled = nest.getFunction()
                      .walk([&](LevelLoopOp loop) {
                        bool isIt = loop.getRolled() && loop.getName() == getLoop();
                        return isIt ? WalkResult::interrupt() : WalkResult::advance();
                      })
                      .wasInterrupted();
  if (isRolled)
    return success();
  return emitError(loc) << "roll: loop '" << getLoop()
                        << "' is made of no chain of statements; a function of lacis.kernel is one";
}
