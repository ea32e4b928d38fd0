// SPDX-License-Identifier: Apache-2.0
/// \file
/// for j: for i in column(j)  -->  for i: for j in row(i): the order in which an operand is walked.
///
/// The pass that chooses walks asks `getWalk` before there is a loop; here is only checked that it had something to ask.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> WalkStepAttr::namedLoops() const { return {}; }

bool WalkStepAttr::comesFirst() const { return true; }

ArrayAttr WalkStepAttr::getWalk(StringRef operand) const { return operand == getOperand() ? getAxes() : ArrayAttr(); }

LogicalResult WalkStepAttr::apply(Nest &nest, Location loc) const {
  Value tensor = nest.findOperand(getOperand());
  if (!tensor)
    return emitError(loc) << "walk: no operand named '" << getOperand() << "'";
  if (!cast<RankedTensorType>(tensor.getType()).getEncoding())
    return emitError(loc) << "walk: operand '" << getOperand() << "' is dense, it has no order of its own";
  return success();
}
