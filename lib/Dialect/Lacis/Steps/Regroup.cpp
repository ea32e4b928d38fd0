// SPDX-License-Identifier: Apache-2.0
/// \file
/// for j0 in row(i): tile  -->  for j0 in union of rows: tiles: the nest walks an execution layout of the operand.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> RegroupStepAttr::namedLoops() const { return {}; }

/// The capacity is open, where the layout has one.
Attribute RegroupStepAttr::unify(Attribute open) const {
  auto other = dyn_cast<RegroupStepAttr>(open);
  if (!other || other.getOperand() != getOperand() || other.getLayout() != getLayout())
    return {};
  if (getCapacity() && !other.getCapacity())
    return {};
  return getCapacity() ? Attribute(*this) : open;
}

LogicalResult RegroupStepAttr::apply(Nest &nest, Location loc) const {
  auto operand = dyn_cast_or_null<BlockArgument>(nest.findOperand(getOperand()));
  if (!operand)
    return emitError(loc) << "regroup: no operand named '" << getOperand() << "'";
  auto type = cast<RankedTensorType>(operand.getType());
  if (!type.getEncoding())
    return emitError(loc) << "regroup: operand '" << getOperand() << "' is dense; relayout copies dense operands";
  auto layout = dyn_cast<FormatAttr>(getLayout());
  int64_t copies = formatOf(operand).getNumBatchLevels();
  if (!layout || static_cast<int64_t>(layout.getAxes().size()) != type.getRank() - copies)
    return emitError(loc) << "regroup: the layout of '" << getOperand() << "' must be a format over its axes"
                          << (copies ? ", without those of the batch" : "");
  if (getCapacity() && *getCapacity() < 1)
    return emitError(loc) << "regroup: a capacity of " << *getCapacity() << " tiles holds none";
  auto mark = LayoutAttr::get(getContext(), layout, getCapacity(), /*swizzle=*/0);
  nest.getFunction().setArgAttr(operand.getArgNumber(), "lacis.regroup", mark);
  return success();
}
