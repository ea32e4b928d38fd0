// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over the rows that an operand lists, and one before it for all rows, as if they were empty.
#include "ListedRows.h"

#include "OwnerForm.h"

using namespace mlir;
using namespace lacis;

bool ListedRows::isListed(Digit digit) const {
  return llvm::any_of(format.getPatternLevels().take_front(count),
                      [&](LevelAttr level) { return llvm::is_contained(level.getDigits(), digit); });
}

/// One loop for each digit of the letter; those that levels list have the positions of the first.
void ListedRows::openLoops(OpBuilder &b, Letter &letter) {
  SmallVector<Digit> digits = digitsOf(letter);
  for (auto [rank, digit] : llvm::enumerate(digits)) {
    bool lists = isListed(digit);
    if (lists && !rows) {
      LevelWalk walk(loc, tensor, axes);
      rows = openLoop(b, isPart ? LoopName(letter.name, path) : walk.loopName(format.getNumBatchLevels()), walk.getRoom(b));
    }
    if (lists)
      continue;
    LoopOp loop = openLoop(b, {digitName(letter.name, rank, digits.size()), path}, sizeOf(b, digit, letter));
    letter.digits.push_back({Digit{0, digit.div, digit.mod}, loop.getCoordinate()});
  }
}

LogicalResult ListedRows::build(OpBuilder &b) {
  OpBuilder before = b;
  return failed(fillAll(before)) ? failure() : buildRows(b);
}

LogicalResult ListedRows::buildPart(OpBuilder &b, PathAttr path) {
  isPart = true;
  this->path = path;
  return buildRows(b);
}

LogicalResult ListedRows::buildRows(OpBuilder &b) {
  count = listedLevels(format, owned);
  OpBuilder before = b;
  for (Letter &letter : letters)
    openLoops(before, letter);
  auto isKnown = [&](const Letter &letter) {
    return llvm::none_of(digitsOf(letter), [&](Digit digit) { return isListed(digit); });
  };
  OpBuilder inner = compose(OpBuilder::atBlockEnd(loops.back().getBlock()), isKnown);
  bool ok = true;
  unsigned end = format.getNumBatchLevels() + count;
  auto atRow = [&](OpBuilder &b, Value position, ValueRange) -> LevelWalk::Values {
    Expression expression(sizes);
    expression.setListed(tensor, end, position);
    if (isPart)
      expression.setOnly(tensor);
    ok &= succeeded(write(b, expression));
    return {};
  };
  LevelWalk(loc, tensor, axes).emitListed(inner, rows.getCoordinate(), end, atRow);
  closeLoops();
  return success(ok);
}
