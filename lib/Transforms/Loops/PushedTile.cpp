// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that walks an operand in its order and adds to a tile of what its lower levels find of the output.
#include "PushedTile.h"

#include "OwnerForm.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace lacis;

PushedTile::PushedTile(linalg::GenericOp root, OpOperand &operand, Letters letters, BlockArgument output,
                       const llvm::StringMap<Value> &sizes)
    : OwnedNest(root, operand, letters, output, sizes), owners(ownerLevels(format, owned)) {
  for (Letter &letter : this->letters) {
    SmallVector<Digit> digits = digitsOf(letter);
    for (auto [rank, digit] : llvm::enumerate(digits))
      if (isPushed(digit))
        pushed.push_back({&letter, digit, digitName(letter.name, rank, digits.size())});
  }
}

bool PushedTile::isPushed(Digit digit) const {
  return llvm::any_of(format.getLevels().drop_front(owners),
                      [&](LevelAttr level) { return llvm::is_contained(level.getDigits(), digit); });
}

/// Loops over the digits of a letter that the owner has.
void PushedTile::openOwner(OpBuilder &b, Letter &letter) {
  SmallVector<Digit> digits = digitsOf(letter);
  for (auto [rank, digit] : llvm::enumerate(digits)) {
    if (isPushed(digit))
      continue;
    LoopOp loop = openLoop(b, digitName(letter.name, rank, digits.size()), sizeOf(b, digit, letter));
    letter.digits.push_back({Digit{0, digit.div, digit.mod}, loop.getCoordinate()});
  }
}

Value PushedTile::makeTile(OpBuilder &b) {
  SmallVector<Value> extents;
  std::string axes, levels;
  for (const Pushed &each : pushed) {
    std::string axis = (extents.empty() ? "l" : ", l") + std::to_string(extents.size());
    axes += axis;
    levels += axis + " : dense";
    extents.push_back(arith::ConstantIndexOp::create(b, loc, each.digit.mod));
  }
  Attribute layout = parseAttribute("#lacis.format<(" + axes + ") -> (" + levels + ")>", root.getContext());
  Type element = cast<RankedTensorType>(product.getResult(0).getType()).getElementType();
  SmallVector<int64_t> shape(extents.size(), ShapedType::kDynamic);
  auto made = WorkspaceOp::create(b, loc, RankedTensorType::get(shape, element, layout), extents);
  made.setPlace(WorkspacePlace::Private);
  return made;
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

LogicalResult PushedTile::push(OpBuilder &b) {
  bool ok = true;
  Value position = arith::ConstantIndexOp::create(b, loc, 0);
  for (auto [number, level] : llvm::enumerate(format.getLevels().take_front(owners))) {
    auto digits = llvm::map_to_vector(
        level.getDigits(), [&](Digit digit) { return axes[digit.axis]->digit(b, loc, digit.div, digit.mod); });
    if (!level.getExtent().sharesPattern())
      position = LocateOp::create(b, loc, b.getIndexType(), tensor, number, position, digits);
  }
  auto atEntry = [&](OpBuilder &b, Value position, ValueRange) -> LevelWalk::Values {
    Expression expression(sizes);
    SmallVector<Value> where = place(b);
    Type element = cast<RankedTensorType>(tile.getType()).getElementType();
    Value before = ReadOp::create(b, loc, element, tile, where, Value(), IntegerAttr());
    SmallVector<Letter *> known(axes);
    for (Letter &letter : letters)
      known.push_back(&letter);
    FailureOr<Value> after = expression.update(b, operand, position, known, before);
    ok &= succeeded(after);
    if (ok)
      WriteOp::create(b, loc, *after, tile, where, Value(), IntegerAttr());
    return {};
  };
  LevelWalk(loc, tensor, axes).emitBelow(b, owners, position, {}, atEntry);
  return success(ok);
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
  for (Letter &letter : letters)
    openOwner(before, letter);
  auto isKnown = [&](const Letter &letter) {
    return llvm::none_of(digitsOf(letter), [&](Digit digit) { return isPushed(digit); });
  };
  OpBuilder inner = compose(OpBuilder::atBlockEnd(loops.back().getBlock()), isKnown);
  tile = makeTile(inner);
  if (failed(begin(inner)) || failed(push(inner)) || failed(finish(inner)))
    return failure();
  closeLoops();
  return success();
}
