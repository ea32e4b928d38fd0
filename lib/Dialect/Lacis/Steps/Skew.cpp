// SPDX-License-Identifier: Apache-2.0
/// \file
/// for j: A(j); B(j)  -->  A(0); for j >= 1: A(j) beside B(j - 1); B(last)
///
/// A mark: the pass that makes tiles of statements (StatementRounds.cpp) does what it says.
#include "lacis/Dialect/Lacis/IR/PostponedSums.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> SkewStepAttr::namedLoops() const { return {getLoop()}; }

/// The rounds are open.
Attribute SkewStepAttr::unify(Attribute open) const {
  auto other = dyn_cast<SkewStepAttr>(open);
  return other && other.getLoop() == getLoop() ? Attribute(*this) : Attribute();
}

LogicalResult SkewStepAttr::apply(Nest &nest, Location loc) const {
  int64_t rounds = getRounds().value_or(1);
  if (rounds != 0 && rounds != 1)
    return emitError(loc) << "skew: sums are complete " << rounds << " rounds later; take 1, or 0 for none";
  SmallVector<Operation *> loops = nest.findAll(getLoop());
  if (loops.empty())
    return emitError(loc) << "skew: no loop named '" << getLoop() << "'";
  auto round = loops.size() == 1 ? dyn_cast<LevelLoopOp>(loops.front()) : LevelLoopOp();
  if (!round || !round.getRolled())
    return emitError(loc) << "skew: loop '" << getLoop()
                          << "' has no rounds of statements; take the one that 'roll' makes of a chain";
  if (rounds == 1 && sumsToPostpone(round).empty())
    return emitError(loc) << "skew: no sum of loop '" << getLoop()
                          << "' can wait for the next round; on tiles one can that multiplies what its round made and an "
                             "operand that it reads once, where others multiply operands alone";
  if (!round.getTiled())
    return emitError(loc) << "skew: the statements of loop '" << getLoop() << "' are of no tiles; 'tensorize' comes first";
  round.setSkewed(rounds == 1);
  round->setLoc(loc);
  return success();
}
