// SPDX-License-Identifier: Apache-2.0
/// \file
/// for j: load(j); compute(j)  -->  load(0), load(1), ...; for j: load(j + stages); compute(j)
///
/// Of tiles a producer does (FormTiles.cpp); else each thread by itself, in registers (LoadAhead.cpp).
#include "lacis/Dialect/Lacis/IR/Limits.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> PipelineStepAttr::namedLoops() const { return {getLoop()}; }

/// The stages are open.
Attribute PipelineStepAttr::unify(Attribute open) const {
  auto other = dyn_cast<PipelineStepAttr>(open);
  return other && other.getLoop() == getLoop() ? Attribute(*this) : Attribute();
}

LogicalResult PipelineStepAttr::apply(Nest &nest, Location loc) const {
  SmallVector<Operation *> loops = nest.findAll(getLoop());
  if (loops.empty())
    return emitError(loc) << "pipeline: no loop named '" << getLoop() << "'";
  if (loops.size() != 1 || loops.front()->getNumResults() == 0)
    return emitError(loc) << "pipeline: loop '" << getLoop() << "' carries no sum; what a sum adds up is loaded ahead";
  if (getStages() < 2)
    return emitError(loc) << "pipeline: " << getStages() << " stages leave nothing to load ahead; take 2 or more";
  if (getStages() > kMostStages)
    return emitError(loc) << "pipeline: " << getStages() << " stages of loop '" << getLoop() << "' are more than "
                          << kMostStages << ", the most that are loaded ahead";
  if (auto loop = dyn_cast<LoopOp>(loops.front()); loop && (loop.getBind() || loop.getVectorize() || loop.getJam()))
    return emitError(loc) << "pipeline: loop '" << getLoop() << "' is bound, vectorized or jammed: its rounds run at once";
  cast<LoopOpInterface>(loops.front()).setPipeline(getStages());
  loops.front()->setLoc(loc);
  return success();
}
