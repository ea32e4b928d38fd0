// SPDX-License-Identifier: Apache-2.0
/// \file
/// Dense temporaries: their layout, and how they are made.
#include "lacis/Dialect/Lacis/IR/Workspace.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

FormatAttr lacis::denseLayout(MLIRContext *context, unsigned rank, ArrayRef<unsigned> order) {
  std::string axes, levels;
  for (unsigned axis = 0; axis < rank; ++axis) {
    std::string comma = axis == 0 ? "" : ", ";
    axes += comma + "l" + std::to_string(axis);
    levels += comma + "l" + std::to_string(order.empty() ? axis : order[axis]) + " : dense";
  }
  return cast<FormatAttr>(parseAttribute("#lacis.format<(" + axes + ") -> (" + levels + ")>", context));
}

WorkspaceOp lacis::makeWorkspace(OpBuilder &b, Location loc, Type element, ValueRange sizes, ArrayRef<unsigned> order) {
  SmallVector<int64_t> shape(sizes.size(), ShapedType::kDynamic);
  FormatAttr layout = denseLayout(b.getContext(), sizes.size(), order);
  return WorkspaceOp::create(b, loc, RankedTensorType::get(shape, element, layout), sizes);
}

WorkspaceOp lacis::makeTile(OpBuilder &b, Location loc, Type element, ArrayRef<int64_t> extents, WorkspacePlace place,
                            ArrayRef<unsigned> order) {
  SmallVector<Value> sizes;
  for (int64_t extent : extents)
    sizes.push_back(arith::ConstantIndexOp::create(b, loc, extent));
  WorkspaceOp made = makeWorkspace(b, loc, element, sizes, order);
  made.setPlace(place);
  return made;
}
