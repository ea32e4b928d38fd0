// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over the rows that an operand lists, and one before it for all rows, as if they were empty.
#include "ListedRows.h"

#include "OwnerForm.h"

using namespace mlir;
using namespace lacis;

ListedRows::ListedRows(linalg::GenericOp root, OpOperand &operand, Letters letters, BlockArgument output,
                       const llvm::StringMap<Value> &sizes)
    : loc(root.getLoc()), root(root), tensor(operand.get()), format(formatOf(tensor)), letters(letters), output(output),
      sizes(sizes) {
  auto product = cast<linalg::GenericOp>(operand.getOwner());
  AffineMap map = product.getMatchingIndexingMap(&operand);
  summed.resize(map.getNumResults());
  SmallVector<unsigned> owned;
  for (unsigned axis = 0; axis < map.getNumResults(); ++axis) {
    std::string name = letterName(product, map.getDimPosition(axis));
    auto *found = llvm::find_if(letters, [&](Letter &letter) { return letter.name == name; });
    summed[axis].name = name;
    axes.push_back(found == letters.end() ? &summed[axis] : found);
    if (found != letters.end())
      owned.push_back(axis);
  }
  count = listedLevels(format, owned);
}

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
    openLoop(b, "unlisted." + letter.name, letter.size);
    letter.coordinate = loops.back().getCoordinate();
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

void ListedRows::openLoop(OpBuilder &b, StringRef name, Value size) {
  OpBuilder inner = loops.empty() ? b : OpBuilder::atBlockEnd(loops.back().getBlock());
  loops.push_back(LoopOp::create(inner, loc, name, size));
  b.setInsertionPoint(loops.front()); // sizes stand before the nest
}

void ListedRows::closeLoops() {
  for (LoopOp loop : loops) {
    OpBuilder end = OpBuilder::atBlockEnd(loop.getBlock());
    YieldOp::create(end, loc, ValueRange());
  }
  loops.clear();
}

/// One loop for each digit of the letter, most significant first; those that levels list have the positions of the first.
void ListedRows::openLoops(OpBuilder &b, Letter &letter) {
  SmallVector<Digit> digits;
  for (LevelAttr level : format.getLevels())
    llvm::copy_if(level.getDigits(), std::back_inserter(digits), [&](Digit d) { return axes[d.axis] == &letter; });
  llvm::sort(digits, [](Digit a, Digit b) { return a.div > b.div; });
  if (digits.empty())
    digits.push_back(Digit{0, 1, 0});
  for (auto [rank, digit] : llvm::enumerate(digits)) {
    bool lists = axes[digit.axis] == &letter && isListed(digit);
    if (lists && !rows) {
      LevelWalk walk(loc, tensor, axes);
      openLoop(b, walk.loopName(0), walk.getRoom(b));
      rows = loops.back();
    }
    if (lists)
      continue;
    Value size = digit.mod ? arith::ConstantIndexOp::create(b, loc, digit.mod).getResult() : letter.size;
    if (!digit.mod && digit.div != 1)
      size = arith::CeilDivUIOp::create(b, loc, size, arith::ConstantIndexOp::create(b, loc, digit.div));
    openLoop(b, digitName(letter.name, rank, digits.size()), size);
    letter.digits.push_back({Digit{0, digit.div, digit.mod}, loops.back().getCoordinate()});
  }
}

OpBuilder ListedRows::composeOthers() {
  OpBuilder inner = OpBuilder::atBlockEnd(loops.back().getBlock());
  for (Letter &letter : letters) {
    bool lists = false;
    for (LevelAttr level : format.getLevels().take_front(count))
      lists |= llvm::any_of(level.getDigits(), [&](Digit d) { return axes[d.axis] == &letter; });
    if (lists)
      continue;
    letter.compose(inner, loc);
    if (!needsGuard(letter.size, letter.digits.front().first.div, letter.digits.size()))
      continue;
    Value inside = arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, letter.coordinate, letter.size);
    inner = scf::IfOp::create(inner, loc, inside, /*withElseRegion=*/false).getThenBodyBuilder();
  }
  return inner;
}

FailureOr<Value> ListedRows::write(OpBuilder &b, Expression &expression) {
  SmallVector<Value> coordinates;
  for (Letter &letter : letters) {
    coordinates.push_back(letter.coordinate);
    expression.noteDigits(letter);
  }
  FailureOr<Value> value = expression.element(b, root.getResult(0), coordinates);
  if (failed(value))
    return failure();
  WriteOp::create(b, loc, *value, output, coordinates, Value(), IntegerAttr());
  return value;
}

LogicalResult ListedRows::build(OpBuilder &b) {
  OpBuilder before = b;
  if (failed(fillAll(before)))
    return failure();
  before = b;
  for (Letter &letter : letters)
    openLoops(before, letter);
  OpBuilder inner = composeOthers();
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
