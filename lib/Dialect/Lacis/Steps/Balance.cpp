// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i: for b: s[i, b]  -->  for n in workers: for (i, b) in list(n): s[i, b]: the heaviest rows first.
#include "lacis/Dialect/Lacis/IR/Product.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> BalanceStepAttr::namedLoops() const { return {getLoop()}; }

/// Raster, groups, cut and parts are open; what is not said of the last two is completed.
Attribute BalanceStepAttr::unify(Attribute open) const {
  auto other = dyn_cast<BalanceStepAttr>(open);
  if (!other || other.getLoop() != getLoop() || (getWithin() && getWithin() != other.getWithin()))
    return {};
  return get(getContext(), getLoop(), getRaster(), getGroups(), other.getWithin(), getCut() ? getCut() : other.getCut(),
             getParts() ? getParts() : other.getParts());
}

LogicalResult BalanceStepAttr::apply(Nest &nest, Location loc) const {
  FailureOr<LoopOp> loop = nest.requireFree(getLoop(), "balance", loc);
  if (failed(loop))
    return failure();
  if (getRaster() < 1 || getGroups() < 1)
    return emitError(loc) << "balance: raster and groups are at least 1";
  SmallVector<LoopOp> chain = perfectChain(outermostLoop(*loop));
  bool shares = chain[0] == *loop && isOverPositions(*loop); // of stored blocks: their number is that of the pattern
  if (!shares && (chain.size() < 2 || chain[1] != *loop))
    return emitError(loc) << "balance: loop '" << getLoop() << "' must be the second of its nest, inside the loop whose "
                          << "rounds differ in work, or the first and over stored blocks; reorder it";
  if (shares && (getRaster() != 1 || getGroups() != 1))
    return emitError(loc) << "balance: loop '" << getLoop() << "' runs over stored blocks, which have neither raster nor "
                          << "groups; both are 1";
  if (getWithin() && (!shares || *getWithin() < 1))
    return emitError(loc) << "balance: only shares of stored blocks lie 'within' so many columns, at least 1";
  if (getCut() && (shares || *getCut() < 1))
    return emitError(loc) << "balance: rows are 'cut' up to so many rounds of the second loop, at least 1";
  if (getParts() && (!shares || *getParts() < 2))
    return emitError(loc) << "balance: shares of stored blocks have 'parts', at least 2";
  loop->setBalanceAttr(WorkListsAttr::get(getContext(), getRaster(), getGroups(), getWithin(), getCut(), getParts()));
  (*loop)->setLoc(loc);
  return success();
}
