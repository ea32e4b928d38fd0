// SPDX-License-Identifier: Apache-2.0
/// \file
/// for b: t = tile(16): s(t[i])  -->  t = tile(16, b): for b: s(t[i, b])
#include "WidenTiles.h"

#include "lacis/Dialect/Lacis/IR/Workspace.h"

using namespace mlir;
using namespace lacis;

/// One axis more, which lies innermost.
static RankedTensorType widened(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getRank() + 1, ShapedType::kDynamic);
  return RankedTensorType::get(shape, type.getElementType(), denseLayout(type.getContext(), shape.size()));
}

void lacis::widenTiles(LoopOp loop, int64_t count) {
  SmallVector<WorkspaceOp> tiles;
  loop->walk([&](WorkspaceOp tile) { tiles.push_back(tile); });
  for (WorkspaceOp tile : tiles) {
    OpBuilder b(loop);
    SmallVector<Value> sizes;
    for (Value size : tile.getSizes())
      sizes.push_back(arith::ConstantIndexOp::create(b, tile.getLoc(), *getConstantIntValue(size)));
    sizes.push_back(arith::ConstantIndexOp::create(b, tile.getLoc(), count));
    auto wide = WorkspaceOp::create(b, tile.getLoc(), widened(tile.getResult().getType()), sizes);
    wide.setPlaceAttr(tile.getPlaceAttr());
    for (Operation *user : llvm::make_early_inc_range(tile->getUsers())) {
      auto at = [&](auto access) {
        access.getIndicesMutable().append(loop.getCoordinate());
        access.getTensorMutable().assign(wide);
      };
      if (auto read = dyn_cast<ReadOp>(user))
        at(read);
      else
        at(cast<WriteOp>(user));
    }
    tile.erase();
  }
}
