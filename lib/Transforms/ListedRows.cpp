// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over the rows that an operand lists, and one before it for all rows, as if they were empty.
#include "ListedRows.h"

#include "OwnerForm.h"

using namespace mlir;
using namespace lacis;

bool ListedRows::isListed(Digit digit) const {
  return llvm::any_of(format.getLevels().take_front(count),
                      [&](LevelAttr level) { return llvm::is_contained(level.getDigits(), digit); });
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

/// for i: y[i] = finish(init), which the rows that are listed write over; an output of zeros needs no nest for that.
LogicalResult ListedRows::fillAll(OpBuilder &b) {
  SmallVector<Letter> all(letters);
  for (Letter &letter : all) {
    letter.coordinate = openLoop(b, "unlisted." + letter.name, letter.size).getCoordinate();
    loops.back()->setAttr("lacis.unlisted", b.getUnitAttr());
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
  bool zeros = isZero(*written);
  auto function = cast<func::FuncOp>(output.getOwner()->getParentOp());
  function.setArgAttr(output.getArgNumber(), "lacis.listed", b.getBoolAttr(zeros));
  if (zeros)
    nest.erase();
  return success();
}

/// One loop for each digit of the letter; those that levels list have the positions of the first.
void ListedRows::openLoops(OpBuilder &b, Letter &letter) {
  SmallVector<Digit> digits = digitsOf(letter);
  for (auto [rank, digit] : llvm::enumerate(digits)) {
    bool lists = isListed(digit);
    if (lists && !rows) {
      LevelWalk walk(loc, tensor, axes);
      rows = openLoop(b, walk.loopName(0), walk.getRoom(b));
    }
    if (lists)
      continue;
    LoopOp loop = openLoop(b, digitName(letter.name, rank, digits.size()), sizeOf(b, digit, letter));
    letter.digits.push_back({Digit{0, digit.div, digit.mod}, loop.getCoordinate()});
  }
}

LogicalResult ListedRows::build(OpBuilder &b) {
  count = listedLevels(format, owned);
  OpBuilder before = b;
  if (failed(fillAll(before)))
    return failure();
  before = b;
  for (Letter &letter : letters)
    openLoops(before, letter);
  auto isKnown = [&](const Letter &letter) {
    return llvm::none_of(digitsOf(letter), [&](Digit digit) { return isListed(digit); });
  };
  OpBuilder inner = compose(OpBuilder::atBlockEnd(loops.back().getBlock()), isKnown);
  bool ok = true;
  auto atRow = [&](OpBuilder &b, Value position, ValueRange) -> LevelWalk::Values {
    Expression expression(sizes);
    expression.setListed(tensor, count, position);
    ok &= succeeded(write(b, expression));
    return {};
  };
  LevelWalk(loc, tensor, axes).emitListed(inner, rows.getCoordinate(), count, atRow);
  closeLoops();
  return success(ok);
}
