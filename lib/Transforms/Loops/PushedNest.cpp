// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest that walks an operand in its order and adds each entry to the element of the output that its levels find.
#include "PushedNest.h"

#include "OwnerForm.h"

using namespace mlir;
using namespace lacis;

PushedNest::PushedNest(linalg::GenericOp root, OpOperand &operand, Letters letters, BlockArgument output,
                       const llvm::StringMap<Value> &sizes)
    : OwnedNest(root, operand, letters, output, sizes), owners(ownerLevels(format, owned)) {
  for (Letter &letter : this->letters) {
    SmallVector<Digit> digits = digitsOf(letter);
    for (auto [rank, digit] : llvm::enumerate(digits))
      if (isPushed(digit))
        pushed.push_back({&letter, digit, digitName(letter.name, rank, digits.size())});
  }
}

bool PushedNest::isPushed(Digit digit) const {
  return llvm::any_of(format.getLevels().drop_front(owners),
                      [&](LevelAttr level) { return llvm::is_contained(level.getDigits(), digit); });
}

OpBuilder PushedNest::openOwners(OpBuilder &b) {
  for (Letter &letter : letters) {
    SmallVector<Digit> digits = digitsOf(letter);
    for (auto [rank, digit] : llvm::enumerate(digits)) {
      if (isPushed(digit))
        continue;
      LoopOp loop = openLoop(b, digitName(letter.name, rank, digits.size()), sizeOf(b, digit, letter));
      letter.digits.push_back({Digit{0, digit.div, digit.mod}, loop.getCoordinate()});
    }
  }
  auto isKnown = [&](const Letter &letter) {
    return llvm::none_of(digitsOf(letter), [&](Digit digit) { return isPushed(digit); });
  };
  return compose(loops.empty() ? b : OpBuilder::atBlockEnd(loops.back().getBlock()), isKnown);
}

LogicalResult PushedNest::push(OpBuilder &b, Value target, Place place) {
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
    Type element = cast<RankedTensorType>(target.getType()).getElementType();
    Value before = ReadOp::create(b, loc, element, target, where, Value(), IntegerAttr());
    SmallVector<Letter *> known(axes);
    for (Letter &letter : letters)
      known.push_back(&letter);
    FailureOr<Value> after = expression.update(b, operand, position, known, before);
    ok &= succeeded(after);
    if (ok)
      WriteOp::create(b, loc, *after, target, where, Value(), IntegerAttr());
    return {};
  };
  LevelWalk(loc, tensor, axes).emitBelow(b, owners, position, {}, atEntry);
  return success(ok);
}
