// SPDX-License-Identifier: Apache-2.0
/// \file
/// Steps that mark a loop for the pass that realises them: bind, vectorize, jam, unroll.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

LogicalResult BindStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.require(getLoop(), "bind", loc);
  if (failed(loop))
    return failure();
  if (loop->getNumResults() != 0)
    return emitError(loc) << "bind: loop '" << getLoop() << "' carries a sum; two units would race for it";
  static constexpr StringRef kUnits[] = {"parallel", "block.x", "thread.x", "warp", "lane"};
  if (!llvm::is_contained(kUnits, getUnit()))
    return emitError(loc) << "bind: no unit '" << getUnit()
                          << "'; units are 'parallel', 'block.x', 'thread.x', 'warp', 'lane'";
  loop->setBind(getUnit());
  return success();
}

LogicalResult VectorizeStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.require(getLoop(), "vectorize", loc);
  if (failed(loop))
    return failure();
  if (loop->getTrip() != getWidth())
    return emitError(loc) << "vectorize: loop '" << getLoop() << "' does not run exactly " << getWidth()
                          << " times; split it first";
  loop->setVectorize(getWidth());
  return success();
}

LogicalResult JamStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.require(getLoop(), "jam", loc);
  if (failed(loop))
    return failure();
  if (!loop->getTrip())
    return emitError(loc) << "jam: loop '" << getLoop() << "' has no constant trip count; split it first";
  loop->setJam(*loop->getTrip());
  return success();
}

LogicalResult UnrollStepAttr::apply(Nest &nest, Location loc) const {
  if (getFactor() <= 0)
    return emitError(loc) << "unroll: factor " << getFactor() << " of loop '" << getLoop() << "' must be positive";
  bool found = false;
  nest.getFunction().walk([&](Operation *op) {
    if (!isa<LoopOp, LevelLoopOp>(op) || op->getAttrOfType<StringAttr>("name").getValue() != getLoop())
      return;
    op->setAttr("unroll", IntegerAttr::get(IntegerType::get(op->getContext(), 64), getFactor()));
    found = true;
  });
  return found ? success() : LogicalResult(emitError(loc) << "unroll: no loop named '" << getLoop() << "'");
}
