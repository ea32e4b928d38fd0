// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that adds to a tile of what an operand's lower levels find of the output.
#include "PushedTile.h"

#include "OwnerForm.h"

#include "lacis/Dialect/Lacis/IR/Workspace.h"

using namespace mlir;
using namespace lacis;

bool PushedTile::fits() const { return pushesToTile(format, owned); }

Value PushedTile::makeTile(OpBuilder &b) {
  SmallVector<int64_t> extents = llvm::map_to_vector(pushed, [](const Pushed &each) { return each.digit.mod; });
  return lacis::makeTile(b, loc, cast<RankedTensorType>(product.getResult(0).getType()).getElementType(), extents);
}

SmallVector<Value> PushedTile::place(OpBuilder &b) {
  return llvm::map_to_vector(
      pushed, [&](const Pushed &each) { return each.letter->digit(b, loc, each.digit.div, each.digit.mod); });
}

LogicalResult PushedTile::overTile(OpBuilder &b, Body body) {
  SmallVector<Letter> before(letters);
  SmallVector<LoopOp> around = std::exchange(loops, {});
  OpBuilder sizes = b;
  for (const Pushed &each : pushed) {
    LoopOp loop = openLoop(sizes, each.name, sizeOf(sizes, each.digit, *each.letter));
    each.letter->digits.push_back({Digit{0, each.digit.div, each.digit.mod}, loop.getCoordinate()});
  }
  OpBuilder inner = compose(OpBuilder::atBlockEnd(loops.back().getBlock()), [](const Letter &) { return true; });
  LogicalResult done = body(inner);
  closeLoops();
  loops = around;
  llvm::copy(before, letters.begin());
  return done;
}

LogicalResult PushedTile::begin(OpBuilder &b) {
  return overTile(b, [&](OpBuilder &inner) -> LogicalResult {
    Expression expression(sizes);
    expression.setEmpty();
    FailureOr<Value> init = expression.element(inner, product.getResult(0), coordinates(expression));
    if (succeeded(init))
      WriteOp::create(inner, loc, *init, tile, place(inner), Value(), IntegerAttr());
    return init;
  });
}

LogicalResult PushedTile::finish(OpBuilder &b) {
  return overTile(b, [&](OpBuilder &inner) -> LogicalResult {
    Expression expression(sizes);
    Type element = cast<RankedTensorType>(tile.getType()).getElementType();
    Value sum = ReadOp::create(inner, loc, element, tile, place(inner), Value(), IntegerAttr());
    expression.setSummed(product.getResult(0), sum);
    return write(inner, expression);
  });
}

LogicalResult PushedTile::build(OpBuilder &b) {
  OpBuilder before = b;
  OpBuilder inner = openOwners(before);
  tile = makeTile(inner);
  auto where = [&](OpBuilder &b) { return place(b); };
  if (failed(begin(inner)) || failed(push(inner, tile, where)) || failed(finish(inner)))
    return failure();
  closeLoops();
  return success();
}
