// SPDX-License-Identifier: Apache-2.0
/// \file
/// for b in B  -->  for b in 128: sizes of letters become constants, which the launch checks.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> SpecializeStepAttr::namedLoops() const { return {}; }

bool SpecializeStepAttr::comesFirst() const { return true; }

/// Gives the axes of `tensor` that are called `letter` a size; false where none is.
static bool giveSize(Value tensor, ArrayAttr axes, StringAttr letter, int64_t size) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  bool found = false;
  for (auto [axis, name] : llvm::enumerate(axes))
    if (name == letter) {
      shape[axis] = size;
      found = true;
    }
  if (!found)
    return false;
  tensor.setType(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
  for (Operation *user : tensor.getUsers())
    if (isa<PartOp, WalkOp>(user)) // the same tensor seen otherwise
      giveSize(user->getResult(0), axes, letter, size);
  return true;
}

LogicalResult SpecializeStepAttr::apply(Nest &nest, Location loc) const {
  func::FuncOp function = nest.getFunction();
  for (NamedAttribute entry : getSizes()) {
    auto size = dyn_cast<IntegerAttr>(entry.getValue());
    if (!size || size.getInt() < 0)
      return emitError(loc) << "specialize: " << entry.getValue() << " is no size of letter " << entry.getName();
    bool found = false;
    for (BlockArgument argument : function.getArguments())
      if (auto axes = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "lacis.axes"))
        found |= giveSize(argument, axes, entry.getName(), size.getInt());
    if (!found)
      return emitError(loc) << "specialize: no operand has letter " << entry.getName();
  }
  function.setType(FunctionType::get(getContext(), function.getBody().getArgumentTypes(), function.getResultTypes()));
  return success();
}
