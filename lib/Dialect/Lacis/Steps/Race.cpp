// SPDX-License-Identifier: Apache-2.0
/// \file
/// parallel for i: y[f(i)] += s  -->  parts of a sum, brought together in their order or as they arrive.
#include "RaceStrategies.h"

using namespace mlir;
using namespace lacis;

/// The ways there are; each rewrites a nest whose shares leave parts in a workspace.
static const struct {
  StringRef name;
  LogicalResult (*apply)(LoopOp shares, Nest &nest, Location loc);
} kStrategies[] = {
    {"order", [](LoopOp, Nest &, Location) { return success(); }}, // as the nest was made
    {"atomic", addAtomically},
};

SmallVector<StringRef> RaceStepAttr::namedLoops() const { return {getLoop()}; }

LogicalResult RaceStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.require(getLoop(), "race", loc);
  if (failed(loop))
    return failure();
  const auto *strategy = llvm::find_if(kStrategies, [&](const auto &known) { return known.name == getStrategy(); });
  if (strategy == std::end(kStrategies)) {
    auto diagnostic = emitError(loc) << "race: no strategy '" << getStrategy() << "' has code; there are ";
    llvm::interleaveComma(kStrategies, diagnostic, [&](const auto &known) { diagnostic << "'" << known.name << "'"; });
    return diagnostic;
  }
  if (!(*loop)->hasAttr("lacis.meets"))
    return emitError(loc) << "race: iterations of loop '" << getLoop() << "' do not meet in one output";
  if (auto known = (*loop)->getAttrOfType<StringAttr>("lacis.race"); known && known != getStrategy())
    return emitError(loc) << "race: loop '" << getLoop() << "' has the strategy " << known << " already";
  if (failed(strategy->apply(*loop, nest, loc)))
    return failure();
  (*loop)->setAttr("lacis.race", StringAttr::get(getContext(), getStrategy()));
  return success();
}
