// SPDX-License-Identifier: Apache-2.0
/// \file
/// The strategies of `race` that files have registered, and those that would do at a loop.
#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lacis;

/// By name: files register in no order.
static SmallVector<RaceStrategy> &strategies() {
  static SmallVector<RaceStrategy> all;
  return all;
}

bool lacis::registerRaceStrategy(RaceStrategy strategy) {
  auto *after = llvm::find_if(strategies(), [&](const RaceStrategy &other) { return other.name > strategy.name; });
  strategies().insert(after, strategy);
  return true;
}

const RaceStrategy *lacis::findRaceStrategy(StringRef name) {
  auto *found = llvm::find_if(strategies(), [&](const RaceStrategy &known) { return known.name == name; });
  return found == strategies().end() ? nullptr : found;
}

static std::string quoted(ArrayRef<RaceStrategy> some) {
  auto names =
      llvm::map_to_vector(some, [](const RaceStrategy &strategy) { return ("'" + strategy.name + "'").str(); });
  return names.empty() ? "none" : llvm::join(names, ", ");
}

std::string lacis::raceStrategyNames() { return quoted(strategies()); }

std::string lacis::strategiesFor(LoopOp loop, Nest &nest) {
  SmallVector<RaceStrategy> fitting;
  llvm::copy_if(strategies(), std::back_inserter(fitting),
                [&](const RaceStrategy &strategy) { return strategy.objection(loop, nest).empty(); });
  return quoted(fitting);
}

bool lacis::meetInOutput(LoopOp loop) { return loop.getMeets() || loop.getNumResults() != 0; }
