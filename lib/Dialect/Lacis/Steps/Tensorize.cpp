// SPDX-License-Identifier: Apache-2.0
/// \file
/// for i1: for b1: for j1: y += w * x  -->  y tile += w tile * x tile: loops become one product of tiles.
#include "lacis/Dialect/Lacis/IR/Product.h"
#include "lacis/Dialect/Lacis/Steps/Steps.h"
#include "DefaultSchedule.h"

using namespace mlir;
using namespace lacis;

SmallVector<StringRef> TensorizeStepAttr::namedLoops() const {
  return llvm::map_to_vector(getLoops().getAsValueRange<StringAttr>(), [](StringRef name) { return name; });
}

LogicalResult TensorizeStepAttr::apply(Nest &nest, Location loc) const {
  std::string why;
  std::optional<Product> product = productOf(nest, why);
  if (!product)
    return emitError(loc) << "tensorize: the nest is no product of tiles: " << why;
  for (Attribute attr : getLoops()) {
    auto name = dyn_cast<StringAttr>(attr);
    if (!name)
      return emitError(loc) << "tensorize: " << attr << " is no name of a loop";
    FailureOr<LoopOp> loop = nest.requireFree(name, "tensorize", loc);
    if (failed(loop))
      return failure();
    if (!pinTrip(*loop))
      return emitError(loc) << "tensorize: loop " << name << " has no constant trip count; split it first";
    StringRef letter = letterOf(name);
    StringRef side = letter == product->rows ? "rows" : letter == product->columns ? "columns" : "depth";
    (*loop)->setAttr("lacis.tensorize", StringAttr::get(getContext(), side));
    (*loop)->setLoc(loc);
  }
  return success();
}
