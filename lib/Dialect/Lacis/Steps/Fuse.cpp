// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in n: for j in m  -->  for i_j in n * m: i = i_j / m, j = i_j mod m
#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> FuseStepAttr::namedLoops() const { return {getOuter(), getInner()}; }

LogicalResult FuseStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> outer = nest.requireFree(getOuter(), "fuse", loc), inner = nest.requireFree(getInner(), "fuse", loc);
  if (failed(outer) || failed(inner))
    return failure();
  SmallVector<LoopOp> chain = perfectChain(*outer);
  if (outer->getNumResults() != 0 || chain.size() < 2 || chain[1] != *inner)
    return emitError(loc) << "fuse: loop '" << getInner() << "' is not the only thing in loop '" << getOuter()
                          << "'; reorder them first";
  LoopOp outermost = outermostLoop(*outer);
  if (placeForSizes(*outer) != outermost || placeForSizes(*inner) != outermost)
    return emitError(loc) << "fuse: the size of loop '" << getInner() << "' or '" << getOuter() << "' is computed inside "
                          << "the nest; only loops whose sizes are known before it are fused";
  OpBuilder top(outermost); // sizes stand before the nest
  Value size = arith::MulIOp::create(top, loc, outer->getUpper(), inner->getUpper());
  OpBuilder at(*outer);
  auto fused = LoopOp::create(at, outer->getLoc(), (getOuter() + "_" + getInner()).str(), size);
  passOnRaces(*outer, fused);
  passOnRaces(*inner, fused);
  // Bounds inside do not depend on the coordinates, so these are made where the chain ends.
  Block *innermost = chain.back().getBlock();
  OpBuilder body(innermost, innermost->begin());
  Value divisor = inner->getUpper(), pair = fused.getCoordinate();
  outer->getCoordinate().replaceAllUsesWith(arith::DivUIOp::create(body, outer->getLoc(), pair, divisor));
  inner->getCoordinate().replaceAllUsesWith(arith::RemUIOp::create(body, inner->getLoc(), pair, divisor));
  fused.getBlock()->getOperations().splice(fused.getBlock()->end(), inner->getBlock()->getOperations());
  outer->erase();
  return success();
}
