// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in n: for j in m  -->  for i_j in n * m: i = i_j / m, j = i_j mod m
/// for i in n: for j in row(i)  -->  for i_j in all positions: i = the owner of position i_j
#include "EntryShares.h"

#include "lacis/Dialect/Lacis/Steps/Steps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> FuseStepAttr::namedLoops() const { return {getOuter(), getInner()}; }

/// Rows and their entries: shares of one entry, which leave their parts of a row for `race`.
static LogicalResult fuseEntries(LoopOp rows, LevelLoopOp entries, Location loc) {
  if (std::string why = objectionToShares(rows, entries); !why.empty())
    return emitError(loc) << "fuse: " << why;
  EntryShares(rows, entries, 1, (rows.getName() + "_" + entries.getName()).str(), loc).run();
  return success();
}

LogicalResult FuseStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> outer = nest.requireFree(getOuter(), "fuse", loc);
  if (failed(outer))
    return failure();
  SmallVector<Operation *> found = nest.findAll(getInner());
  if (auto entries = found.size() == 1 ? dyn_cast<LevelLoopOp>(found[0]) : LevelLoopOp())
    return fuseEntries(*outer, entries, loc);
  FailureOr<LoopOp> inner = nest.requireFree(getInner(), "fuse", loc);
  if (failed(inner))
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
