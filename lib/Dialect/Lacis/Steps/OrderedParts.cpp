// SPDX-License-Identifier: Apache-2.0
/// \file
/// share: part[share] = s; after: y[i] = the parts, in their order: as `split_nnz` makes the nest.
#include "PushedSum.h"

#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"

using namespace mlir;
using namespace lacis;

static std::string objection(LoopOp loop, Nest &) {
  return loop.getMeets() && !pushedSum(loop) ? "" : "'order' is for shares of entries, which leave parts of rows";
}

static const bool registered = registerRaceStrategy({"order", objection, [](LoopOp, Nest &, Location) {}});
