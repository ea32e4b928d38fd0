// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i in all rows: s  -->  for i in the rows that the operand lists: s: how its levels own the elements of the output.
///
/// The pass that chooses walks asks `getOwnerForm` before there is a loop; here is only checked that it had something
/// to ask.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> OwnStepAttr::namedLoops() const { return {}; }

bool OwnStepAttr::comesFirst() const { return true; }

StringRef OwnStepAttr::getOwnerForm(StringRef operand) const { return operand == getOperand() ? getForm() : StringRef(); }

LogicalResult OwnStepAttr::apply(Nest &nest, Location loc) const {
  Value tensor = nest.findOperand(getOperand());
  if (!tensor)
    return emitError(loc) << "own: no operand named '" << getOperand() << "'";
  if (!cast<RankedTensorType>(tensor.getType()).getEncoding())
    return emitError(loc) << "own: operand '" << getOperand() << "' is dense, its axes own what they are axes of";
  return success();
}
