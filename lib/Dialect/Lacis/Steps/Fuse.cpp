// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in n: for j in m  -->  for i_j in n * m: i = i_j / m, j = i_j mod m
/// s = sum over i of sum over j  -->  s = sum over i_j in n * m
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
  EntryShares(rows, entries, 1, joined(loc.getContext(), rows.getLoopName(), entries.getLoopName()), loc).run();
  return success();
}

/// Does the sum over `inner` carry on that of `outer`, and is it all that the loop does?
static bool carriesOn(LoopOp inner, LoopOp outer) {
  Block *body = outer.getBlock();
  return &body->front() == inner && inner->getNextNode() == body->getTerminator() &&
         llvm::equal(inner.getInits(), outer.getIterArgs()) &&
         llvm::equal(body->getTerminator()->getOperands(), inner.getResults()) &&
         llvm::all_of(outer.getIterArgs(), [](Value carried) { return carried.hasOneUse(); });
}

static SmallVector<LoopOp> sumChain(LoopOp outermost) {
  SmallVector<LoopOp> chain{outermost};
  for (auto inner = outermost; (inner = dyn_cast<LoopOp>(inner.getBlock()->front())) && carriesOn(inner, chain.back());)
    chain.push_back(inner);
  return chain;
}

/// What the step calls the loop, which may leave out the part of a sum that it is in.
static LoopName asked(LoopOp loop, StringRef name) {
  return loop.getName() == name ? loop.getLoopName() : LoopName(loop.getLetters(), loop.getPathAttr().dropLast());
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
  SmallVector<LoopOp> chain = outer->getNumResults() == 0 ? perfectChain(*outer) : sumChain(*outer);
  if (chain.size() < 2 || chain[1] != *inner)
    return emitError(loc) << "fuse: loop '" << getInner() << "' is not the only thing in loop '" << getOuter()
                          << "'; reorder them first";
  LoopOp outermost = outermostLoop(*outer);
  if (placeForSizes(*outer) != outermost || placeForSizes(*inner) != outermost)
    return emitError(loc) << "fuse: the size of loop '" << getInner() << "' or '" << getOuter() << "' is computed inside "
                          << "the nest; only loops whose sizes are known before it are fused";
  OpBuilder top(outermost); // sizes stand before the nest
  Value size = arith::MulIOp::create(top, loc, outer->getUpper(), inner->getUpper());
  OpBuilder at(*outer);
  LoopName name = joined(getContext(), asked(*outer, getOuter()), asked(*inner, getInner()));
  auto fused = LoopOp::create(at, outer->getLoc(), name, size,
                              outer->getInits(), outer->getReduce());
  passOnRaces(*outer, fused);
  passOnRaces(*inner, fused);
  // Bounds inside do not depend on the coordinates, so these are made where the chain ends.
  Block *innermost = chain.back().getBlock();
  OpBuilder body(innermost, innermost->begin());
  Value divisor = inner->getUpper(), pair = fused.getCoordinate();
  outer->getCoordinate().replaceAllUsesWith(arith::DivUIOp::create(body, outer->getLoc(), pair, divisor));
  inner->getCoordinate().replaceAllUsesWith(arith::RemUIOp::create(body, inner->getLoc(), pair, divisor));
  for (auto [carried, same] : llvm::zip(inner->getIterArgs(), fused.getIterArgs()))
    carried.replaceAllUsesWith(same);
  fused.getBlock()->getOperations().splice(fused.getBlock()->end(), inner->getBlock()->getOperations());
  outer->replaceAllUsesWith(fused);
  (*outer)->erase();
  return success();
}
