// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest whose loops an operand's levels drive: what its forms share.
#include "OwnedNest.h"

#include "OutputLoops.h"

using namespace mlir;
using namespace lacis;

OwnedNest::OwnedNest(linalg::GenericOp root, OpOperand &operand, Letters letters, BlockArgument output,
                     const llvm::StringMap<Value> &sizes)
    : loc(root.getLoc()), root(root), product(cast<linalg::GenericOp>(operand.getOwner())), operand(operand),
      tensor(operand.get()), format(formatOf(tensor)), letters(letters), output(output), sizes(sizes) {
  AffineMap map = product.getMatchingIndexingMap(&operand);
  summed.resize(map.getNumResults());
  for (unsigned axis = 0; axis < map.getNumResults(); ++axis) {
    std::string name = letterName(product, map.getDimPosition(axis));
    auto *found = llvm::find_if(letters, [&](Letter &letter) { return letter.name == name; });
    summed[axis].name = name;
    summed[axis].size = sizes.lookup(name);
    axes.push_back(found == letters.end() ? &summed[axis] : found);
    if (found != letters.end())
      owned.push_back(axis);
  }
}

SmallVector<Digit> OwnedNest::digitsOf(const Letter &letter) const {
  SmallVector<Digit> digits;
  for (LevelAttr level : format.getLevels())
    llvm::copy_if(level.getDigits(), std::back_inserter(digits), [&](Digit digit) { return isOf(digit, letter); });
  return sorted(digits);
}

SmallVector<Digit> OwnedNest::digitsOf(unsigned name) const {
  SmallVector<Digit> digits;
  for (LevelAttr level : format.getLevels())
    llvm::copy_if(level.getDigits(), std::back_inserter(digits), [&](Digit digit) { return digit.axis == name; });
  return sorted(digits);
}

SmallVector<Digit> OwnedNest::sorted(SmallVector<Digit> digits) const {
  llvm::sort(digits, [](Digit a, Digit b) { return a.div > b.div; });
  if (digits.empty())
    digits.push_back(Digit{static_cast<unsigned>(axes.size()), 1, 0});
  return digits;
}

Value OwnedNest::sizeOf(OpBuilder &b, Digit digit, const Letter &letter) {
  if (digit.mod)
    return arith::ConstantIndexOp::create(b, loc, digit.mod);
  if (digit.div == 1)
    return letter.size;
  return arith::CeilDivUIOp::create(b, loc, letter.size, arith::ConstantIndexOp::create(b, loc, digit.div));
}

LoopOp OwnedNest::openLoop(OpBuilder &b, const LoopName &name, Value size) {
  OpBuilder inner = loops.empty() ? b : OpBuilder::atBlockEnd(loops.back().getBlock());
  loops.push_back(LoopOp::create(inner, loc, name, size));
  b.setInsertionPoint(loops.front()); // sizes stand before the nest
  return loops.back();
}

void OwnedNest::closeLoops() {
  lacis::closeLoops(loc, loops);
  loops.clear();
}

OpBuilder OwnedNest::compose(OpBuilder inner, Letter &letter) {
  letter.compose(inner, loc);
  int64_t largest = 1;
  for (auto &[digit, value] : letter.digits)
    largest = std::max(largest, digit.div);
  if (!needsGuard(letter.size, largest, letter.digits.size()))
    return inner;
  Value inside = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, letter.coordinate, letter.size);
  return scf::IfOp::create(inner, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
}

OpBuilder OwnedNest::compose(OpBuilder inner, llvm::function_ref<bool(const Letter &)> isKnown) {
  for (Letter &letter : letters)
    if (!letter.coordinate && isKnown(letter))
      inner = compose(inner, letter);
  return inner;
}

SmallVector<Value> OwnedNest::coordinates(Expression &expression) {
  SmallVector<Value> found;
  for (Letter &letter : letters) {
    found.push_back(letter.coordinate);
    expression.noteDigits(letter);
  }
  return found;
}

FailureOr<Value> OwnedNest::write(OpBuilder &b, Expression &expression) {
  SmallVector<Value> place = coordinates(expression);
  if (running)
    return running->write(b, expression, letters, addsToRunning);
  FailureOr<Value> value = expression.element(b, root.getResult(0), place);
  if (succeeded(value))
    WriteOp::create(b, loc, *value, output, place, Value(), IntegerAttr());
  return value;
}

/// Is the value zero, as far as folding shows?
static bool isZero(Value value) {
  Operation *op = value.getDefiningOp();
  SmallVector<OpFoldResult> folded;
  if (!op || matchPattern(value, m_PosZeroFloat()) || matchPattern(value, m_Zero()))
    return op != nullptr;
  if (op->getNumResults() != 1 || failed(op->fold(folded)) || folded.size() != 1)
    return false;
  auto constant = dyn_cast<Attribute>(folded[0]);
  return constant ? matchPattern(constant, m_PosZeroFloat()) || matchPattern(constant, m_Zero())
                  : value != cast<Value>(folded[0]) && isZero(cast<Value>(folded[0]));
}

LogicalResult OwnedNest::fillAll(OpBuilder &b) {
  SmallVector<Letter> all(letters);
  PathAttr path = pathOf(b.getContext(), PathKind::Phase, "unlisted");
  for (Letter &letter : all) {
    letter.coordinate = openLoop(b, {letter.name, path}, letter.size).getCoordinate();
    loops.back().setUnlisted(true);
  }
  Expression expression(sizes);
  expression.setEmpty();
  Letters own = std::exchange(letters, all);
  OpBuilder inner = OpBuilder::atBlockEnd(loops.back().getBlock());
  FailureOr<Value> written = write(inner, expression);
  letters = own;
  LoopOp nest = loops.front();
  closeLoops();
  if (failed(written))
    return failure();
  bool zeros = isZero(*written) && (!running || running->isOutput());
  auto function = cast<func::FuncOp>(output.getOwner()->getParentOp());
  function.setArgAttr(output.getArgNumber(), "lacis.listed", b.getBoolAttr(zeros));
  if (zeros)
    nest.erase();
  return success();
}
