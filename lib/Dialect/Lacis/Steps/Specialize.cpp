// SPDX-License-Identifier: Apache-2.0
/// \file
/// for b in B  -->  for b in 128: sizes of letters become constants, which the launch checks.
#include "lacis/Dialect/Lacis/Steps/Steps.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> SpecializeStepAttr::namedLoops() const { return {}; }

bool SpecializeStepAttr::comesFirst() const { return true; }

LogicalResult SpecializeStepAttr::apply(Nest &nest, Location loc) const {
  func::FuncOp function = nest.getFunction();
  Builder b(function.getContext());
  for (NamedAttribute entry : getSizes()) {
    auto size = dyn_cast<IntegerAttr>(entry.getValue());
    if (!size || size.getInt() < 0)
      return emitError(loc) << "specialize: " << entry.getValue() << " is no size of letter " << entry.getName();
    bool found = false;
    for (unsigned number = 0; number < function.getNumArguments(); ++number) {
      auto axes = function.getArgAttrOfType<ArrayAttr>(number, "lacis.axes");
      if (!axes)
        continue;
      auto before = function.getArgAttrOfType<DenseI64ArrayAttr>(number, "lacis.sizes");
      SmallVector<int64_t> sizes(axes.size(), -1);
      if (before)
        sizes.assign(before.asArrayRef().begin(), before.asArrayRef().end());
      bool has = false;
      for (auto [axis, letter] : llvm::enumerate(axes))
        if (letter == entry.getName()) {
          sizes[axis] = size.getInt();
          has = true;
        }
      if (has)
        function.setArgAttr(number, "lacis.sizes", b.getDenseI64ArrayAttr(sizes));
      found |= has;
    }
    if (!found)
      return emitError(loc) << "specialize: no operand has letter " << entry.getName();
  }
  return success();
}
