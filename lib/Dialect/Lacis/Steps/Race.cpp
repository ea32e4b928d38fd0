// SPDX-License-Identifier: Apache-2.0
/// \file
/// parallel for i: y[f(i)] += s  -->  parts of a sum, brought together by a strategy.
#include "PositionUnits.h"
#include "PushedSum.h"

#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

/// Another loop over the same parts that says already how they are brought together, or null.
static LoopOp decidedBy(LoopOp loop) {
  LoopOp found;
  outermostLoop(loop)->walk([&](LoopOp other) {
    if (other != loop && other.getMeets() && other.getRace())
      found = other;
  });
  return found;
}

SmallVector<StringRef> RaceStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult RaceStepAttr::apply(Nest &nest, Location loc) const {
  if (std::string why = objectionToPositions(nest, getLoop()); !why.empty())
    return emitError(loc) << "race: " << why;
  FailureOr<LoopOp> loop = nest.require(getLoop(), "race", loc);
  if (failed(loop))
    return failure();
  const RaceStrategy *strategy = findRaceStrategy(getStrategy());
  if (!strategy)
    return emitError(loc) << "race: no strategy '" << getStrategy() << "' has code; there are " << raceStrategyNames();
  if (!meetInOutput(*loop))
    return emitError(loc) << "race: iterations of loop '" << getLoop() << "' do not meet in one output";
  if (StringAttr known = loop->getRaceAttr())
    return known == getStrategy()
               ? success()
               : emitError(loc) << "race: loop '" << getLoop() << "' has the strategy " << known << " already";
  LoopOp decided = decidedBy(*loop);
  if (decided && decided.getRace() != getStrategy() && !strategy->inGroups)
    return emitError(loc) << "race: the parts of loop '" << getLoop() << "' are those of loop '" << decided.getName()
                          << "', which has the strategy " << decided.getRaceAttr() << " already";
  if (!decided || strategy->inGroups || pushedSum(*loop)) {
    if (std::string why = strategy->objection(*loop, nest); !why.empty())
      return emitError(loc) << "race: " << why << "; " << strategiesFor(*loop, nest) << " would do";
    strategy->apply(*loop, nest, loc);
  }
  nest.find(getLoop()).setRace(getStrategy());
  return success();
}
