// SPDX-License-Identifier: Apache-2.0
/// \file
/// y += w[j] * x[j]  -->  t = x[tile]; y += w[j] * t[j]: tiles of the operand are loaded before they are used.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> StageStepAttr::namedLoops() const { return {}; }

LogicalResult StageStepAttr::apply(Nest &nest, Location loc) const {
  auto operand = dyn_cast_or_null<BlockArgument>(nest.findOperand(getOperand()));
  if (!operand)
    return emitError(loc) << "stage: no operand named '" << getOperand() << "'";
  if (nest.getFunction().getArgAttr(operand.getArgNumber(), "lacis.output"))
    return emitError(loc) << "stage: '" << getOperand() << "' is the output; tiles of operands are loaded";
  if (getPlace() != "shared")
    return emitError(loc) << "stage: no place '" << getPlace() << "'; tiles lie in 'shared'";
  nest.getFunction().setArgAttr(operand.getArgNumber(), "lacis.staged", StringAttr::get(getContext(), getPlace()));
  return success();
}
