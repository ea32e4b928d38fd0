// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in 4: s[i]  -->  s[0]; s[1]; s[2]; s[3]: `factor` rounds at once, of any loop that stays a loop.
/// for i: c += s[i]  -->  for i by 2: c0 += s[i]; c1 += s[i + 1]; then c = c0 + c1, where there are `sums`.
#include "lacis/Dialect/Lacis/IR/Limits.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> UnrollStepAttr::namedLoops() const { return {getLoop()}; }

/// How often a loop runs, where that is known.
static std::optional<int64_t> tripOf(Operation *op) {
  if (auto loop = dyn_cast<LoopOp>(op))
    return pinTrip(loop);
  auto loop = cast<LevelLoopOp>(op);
  FormatAttr format = formatOf(loop.getTensor());
  return format.getLevels()[loop.getLevel()].getExtent().getTrip();
}

/// Why the rounds of a loop cannot add to several sums in turn, or nothing.
static std::string objectionToSums(Operation *loop, std::optional<int64_t> factor, int64_t sums) {
  if (auto walk = dyn_cast<LevelLoopOp>(loop); walk && !isStateless(walk))
    return "it walks coordinates that follow from those before them, in one chain";
  if (sums <= 0 || !factor || *factor % sums != 0)
    return (Twine(sums) + " sums do not share the rounds of a factor").str();
  if (!reductionOf(loop))
    return "it carries no sum that one operation adds up";
  return "";
}

/// The factor and the sums are open.
Attribute UnrollStepAttr::unify(Attribute open) const {
  auto other = dyn_cast<UnrollStepAttr>(open);
  return other && other.getLoop() == getLoop() ? Attribute(*this) : Attribute();
}

LogicalResult UnrollStepAttr::apply(Nest &nest, Location loc) const {
  if (getFactor() && *getFactor() <= 0)
    return emitError(loc) << "unroll: factor " << *getFactor() << " of loop '" << getLoop() << "' must be positive";
  SmallVector<Operation *> loops = nest.findAll(getLoop());
  if (loops.empty())
    return emitError(loc) << "unroll: no loop named '" << getLoop() << "'";
  for (Operation *found : loops) {
    auto loop = cast<LoopOpInterface>(found);
    std::optional<int64_t> factor = getFactor() ? getFactor() : tripOf(loop);
    if (!factor)
      return emitError(loc) << "unroll: how often loop '" << getLoop() << "' runs is not known; give a factor";
    if (*factor > kMostRounds)
      return emitError(loc) << "unroll: " << *factor << " rounds of loop '" << getLoop() << "' are more than "
                            << kMostRounds << ", the most that stand side by side; split it first, or take a smaller factor";
    if (auto coordinate = dyn_cast<LoopOp>(found); coordinate && isMarked(coordinate))
      return emitError(loc) << "unroll: loop '" << getLoop() << "' is marked already, and stays no loop";
    if (getSums()) {
      if (std::string why = objectionToSums(loop, factor, *getSums()); !why.empty())
        return emitError(loc) << "unroll: loop '" << getLoop() << "' has no " << *getSums() << " sums: " << why;
      loop.setSums(*getSums());
    }
    loop.setUnroll(*factor);
    if (!loop.getStages() && !loop.getHolds()) // that mark can still fail
      loop->setLoc(loc);
  }
  return success();
}
