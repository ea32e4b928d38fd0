// SPDX-License-Identifier: Apache-2.0
/// \file
/// A nest over equal shares of the positions of an operand whose first levels name a row for each of them.
///
/// Rows ascend, so that a share meets each of its rows in one run. A row whose run lies in one share is finished there. Of
/// a row that crosses an edge, each share keeps its part: one of its first row, or one of its last. A nest after the shares
/// adds the parts of such a row in their order and finishes it, so that no result depends on timing. Rows without entries
/// are written before, as those that no level lists. (The flat segmented sum of COO kernels, as in CUSP.)
#include "SharedRows.h"

#include "OwnerForm.h"

#include "lacis/Dialect/Lacis/IR/Workspace.h"

using namespace mlir;
using namespace lacis;
using arith::CmpIPredicate;

/// Entries of a share where no step says: a few rows of a weight, and parts of 1 / 128 of what the entries read.
static constexpr int64_t kShare = 512;

std::string lacis::objectionToParts(linalg::GenericOp product) {
  return reductionOf(product) ? "" : "its sum is not made by one operation that has a neutral element";
}

SharedRows::SharedRows(linalg::GenericOp root, OpOperand &operand, Letters letters, BlockArgument output,
                       const llvm::StringMap<Value> &sizes)
    : OwnedNest(root, operand, letters, output, sizes), firstLevel(format.getNumBatchLevels()),
      digits(sharedDigits(format, owned)), reduction(*reductionOf(product)) {
  LevelWalk walk(loc, tensor, axes);
  for (LevelAttr level : format.getPatternLevels().drop_back(format.getNumTileLevels()))
    for (Digit digit : level.getDigits())
      name += (name.empty() ? "" : "_") + walk.nameOf(digit);
}

Value SharedRows::compare(Builder &b, CmpIPredicate predicate, Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
}

Value SharedRows::both(Builder &b, Value lhs, Value rhs) { return arith::AndIOp::create(b, loc, lhs, rhs); }

Value SharedRows::negate(Builder &b, Value condition) {
  return arith::XOrIOp::create(b, loc, condition, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
}

Value SharedRows::combine(Builder &b, Value carried, Value part) {
  return lacis::combine(b, loc, reduction, carried, part);
}

/// What parts begin with, how many shares there are, and room for two parts of each.
void SharedRows::prepare(Builder &b) {
  auto fill = product.getOutputs()[0].getDefiningOp<linalg::FillOp>();
  startIsInit = fill && isNeutral(reduction, fill.getInputs()[0]);
  Type element = getElementTypeOrSelf(product.getResult(0).getType());
  start = startIsInit ? fill.getInputs()[0] : arith::ConstantOp::create(b, loc, neutralOf(reduction, element)).getResult();
  size = constant(b, kShare);
  size.getDefiningOp()->setAttr("lacis.share", b.getStringAttr(name));
  count = arith::CeilDivUIOp::create(b, loc, LevelWalk(loc, tensor, axes).getRoom(b), size);
  SmallVector<Value> extents{count, constant(b, 2)};
  for (Letter &letter : letters) {
    SmallVector<Digit> all = digitsOf(letter);
    for (auto [rank, digit] : llvm::enumerate(all)) {
      if (isShared(digit))
        continue;
      others.push_back({&letter, digit, digitName(letter.name, rank, all.size()), sizeOf(b, digit, letter)});
      extents.push_back(others.back().size);
    }
  }
  workspace = makeWorkspace(b, loc, start.getType(), extents);
}

OpBuilder SharedRows::openNest(Builder b, PathAttr path, StringRef shares, bool sharesFirst) {
  coordinatesOfOthers.clear();
  number = {};
  auto openShares = [&] { number = openLoop(b, {shares, path}, count).getCoordinate(); };
  if (sharesFirst)
    openShares();
  for (Letter &letter : letters) {
    letter.coordinate = {};
    letter.digits.clear();
    if (!number && axes[digits[0].axis] == &letter)
      openShares();
    for (Other &other : others) {
      if (other.letter != &letter)
        continue;
      LoopOp loop = openLoop(b, {other.name, path}, other.size);
      letter.digits.push_back({Digit{0, other.digit.div, other.digit.mod}, loop.getCoordinate()});
      coordinatesOfOthers.push_back(loop.getCoordinate());
    }
  }
  auto isKnown = [&](const Letter &letter) {
    return llvm::none_of(digitsOf(letter), [&](Digit digit) { return isShared(digit); });
  };
  OpBuilder inner = compose(OpBuilder::atBlockEnd(loops.back().getBlock()), isKnown);
  auto bounds =
      BoundsOp::create(inner, loc, b.getIndexType(), b.getIndexType(), tensor, firstLevel, constant(inner, 0));
  lo = bounds.getLo(), hi = bounds.getHi();
  Value first = arith::AddIOp::create(inner, loc, lo, arith::MulIOp::create(inner, loc, number, size));
  Value some = compare(inner, CmpIPredicate::slt, first, hi); // the arrays may have room for more
  return scf::IfOp::create(inner, loc, some, /*withElseRegion=*/false).getThenBodyBuilder();
}

SharedRows::Row SharedRows::rowAt(Builder &b, Value position) {
  Row row;
  for (auto [number, level] : llvm::enumerate(format.getPatternLevels())) {
    if (row.size() == digits.size())
      break;
    SmallVector<Type> types(level.getDigits().size(), b.getIndexType());
    Value from = number == 0 ? lo : position;
    auto found = CoordinateOp::create(b, loc, types, b.getI1Type(), tensor, firstLevel + number, from, position);
    llvm::append_range(row, found.getDigits().take_front(digits.size() - row.size()));
  }
  return row;
}

Value SharedRows::isSame(Builder &b, const Row &lhs, const Row &rhs) {
  Value same;
  for (auto [left, right] : llvm::zip(lhs, rhs)) {
    Value equal = compare(b, CmpIPredicate::eq, left, right);
    same = same ? both(b, same, equal) : equal;
  }
  return same;
}

SharedRows::Share SharedRows::shareAt(Builder &b) {
  Value one = constant(b, 1);
  Share share;
  share.first = arith::AddIOp::create(b, loc, lo, arith::MulIOp::create(b, loc, number, size));
  Value end = arith::AddIOp::create(b, loc, share.first, size);
  share.end = arith::MinSIOp::create(b, loc, end, hi);
  Value last = arith::SubIOp::create(b, loc, share.end, one), top = arith::SubIOp::create(b, loc, hi, one);
  Value before = arith::MaxSIOp::create(b, loc, arith::SubIOp::create(b, loc, share.first, one), lo);
  share.head = rowAt(b, share.first);
  share.last = rowAt(b, last);
  share.goesBack = both(b, compare(b, CmpIPredicate::sgt, share.first, lo), isSame(b, rowAt(b, before), share.head));
  Row after = rowAt(b, arith::MinSIOp::create(b, loc, share.end, top));
  share.goesOn = both(b, compare(b, CmpIPredicate::slt, share.end, hi), isSame(b, after, share.last));
  return share;
}

Value SharedRows::endOfRow(Builder &b, const Row &row, Value from) {
  Value end = hi;
  size_t known = 0;
  for (auto [number, level] : llvm::enumerate(format.getPatternLevels())) {
    if (known == row.size())
      break;
    Value next; // the coordinate that the first row after this one has at least
    bool isAfter = false;
    for (auto [which, digit] : llvm::enumerate(level.getDigits())) {
      if (next)
        next = arith::MulIOp::create(b, loc, next, sizeOf(b, digit, *axes[digit.axis]));
      if (known < row.size())
        next = next ? arith::AddIOp::create(b, loc, next, row[known]).getResult() : row[known];
      known = std::min(known + 1, row.size());
      if (!isAfter && (known == row.size() || which + 1 == level.getDigits().size())) {
        next = arith::AddIOp::create(b, loc, next, constant(b, 1));
        isAfter = true;
      }
    }
    end = SeekOp::create(b, loc, b.getIndexType(), tensor, firstLevel + number, from, end, next);
  }
  return end;
}

SmallVector<Value> SharedRows::place(Value share, Value begins) {
  SmallVector<Value> indices{share, begins};
  llvm::append_range(indices, coordinatesOfOthers);
  return indices;
}

/// y[i] = finish(total)
LogicalResult SharedRows::finish(Builder &b, const Row &row, Value total) {
  SmallVector<Letter> before(letters);
  for (auto [digit, value] : llvm::zip(digits, row))
    axes[digit.axis]->digits.push_back({Digit{0, digit.div, digit.mod}, value});
  OpBuilder inner = compose(b, [](const Letter &) { return true; });
  Expression expression(sizes);
  if (!startIsInit) {
    Expression empty(sizes);
    empty.setEmpty();
    FailureOr<Value> init = empty.element(inner, product.getResult(0), coordinates(empty));
    if (failed(init))
      return failure();
    total = combine(inner, *init, total);
  }
  expression.setSummed(product.getResult(0), total);
  FailureOr<Value> written = write(inner, expression);
  llvm::copy(before, letters.begin());
  return written;
}

/// Where a row ends, or the share does: finishes the row, or keeps a part of it.
LogicalResult SharedRows::endRow(Builder &b, const Share &share, const Row &row, Value isLast, Value sum) {
  Value isHead = both(b, share.goesBack, isSame(b, row, share.head)), isTail = both(b, share.goesOn, isLast);
  Value isPart = arith::OrIOp::create(b, loc, isHead, isTail);
  auto choice = scf::IfOp::create(b, loc, isPart, /*withElseRegion=*/true);
  OpBuilder part = choice.getThenBodyBuilder(), whole = choice.getElseBodyBuilder();
  Value begins = arith::SelectOp::create(part, loc, isHead, constant(part, 0), constant(part, 1));
  WriteOp::create(part, loc, sum, workspace, place(number, begins), Value(), IntegerAttr());
  return finish(whole, row, sum);
}

LogicalResult SharedRows::walkShare(Builder &b, const Share &share) {
  Value length = arith::SubIOp::create(b, loc, share.end, share.first), one = constant(b, 1);
  Value last = arith::SubIOp::create(b, loc, share.end, one);
  auto loop = LoopOp::create(b, loc, name + "1", length, start);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBlock());
  Value position = arith::AddIOp::create(inner, loc, share.first, loop.getCoordinate());
  Row row = rowAt(inner, position);
  bool ok = true;
  auto atEntry = [&](OpBuilder &at, Value position, ValueRange carried) -> LevelWalk::Values {
    Expression expression(sizes);
    SmallVector<Letter *> known(axes);
    for (Letter &letter : letters)
      known.push_back(&letter);
    FailureOr<Value> next = expression.update(at, operand, position, known, carried[0]);
    ok &= succeeded(next);
    return {ok ? *next : carried[0]};
  };
  Value carried = loop.getIterArgs()[0];
  Value sum = LevelWalk(loc, tensor, axes).emitAt(inner, lo, position, carried, atEntry)[0];
  Value isLast = compare(inner, CmpIPredicate::eq, position, last);
  Value next = arith::MinSIOp::create(inner, loc, arith::AddIOp::create(inner, loc, position, one), last);
  Value goesOn = isSame(inner, rowAt(inner, next), row);
  Value ends = arith::OrIOp::create(inner, loc, isLast, negate(inner, goesOn));
  auto choice = scf::IfOp::create(inner, loc, start.getType(), ends, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(choice.thenBlock()), otherwise = OpBuilder::atBlockEnd(choice.elseBlock());
  if (!ok || failed(endRow(then, share, row, isLast, sum)))
    return failure();
  scf::YieldOp::create(then, loc, start);
  scf::YieldOp::create(otherwise, loc, sum);
  YieldOp::create(inner, loc, choice.getResults());
  return success();
}

LogicalResult SharedRows::makeShares(Builder &b) {
  OpBuilder inner = openNest(b, {}, name + "0", /*sharesFirst=*/false);
  cast<LoopOp>(number.getParentBlock()->getParentOp()).setMeets(true);
  LogicalResult walked = walkShare(inner, shareAt(inner));
  closeLoops();
  return walked;
}

/// for share: where a row begins in it that goes on: y[row] = finish(its parts)
LogicalResult SharedRows::makeEdges(Builder &b) {
  PathAttr path = nestOf(b.getContext(), name);
  OpBuilder inner = openNest(b, path, LevelWalk(loc, tensor, axes).nameOf(digits[0]), /*sharesFirst=*/true);
  Share share = shareAt(inner);
  Value isHead = both(inner, share.goesBack, isSame(inner, share.head, share.last));
  Value begins = both(inner, share.goesOn, negate(inner, isHead));
  inner = scf::IfOp::create(inner, loc, begins, /*withElseRegion=*/false).getThenBodyBuilder();
  Value one = constant(inner, 1), zero = constant(inner, 0);
  Value end = arith::SubIOp::create(inner, loc, endOfRow(inner, share.last, share.end), lo);
  Value met = arith::SubIOp::create(inner, loc, arith::CeilDivUIOp::create(inner, loc, end, size), number);
  auto sum = LoopOp::create(inner, loc, {name + "0", path}, met, start, reduction);
  OpBuilder body = OpBuilder::atBlockEnd(sum.getBlock());
  Value isFirst = compare(body, CmpIPredicate::eq, sum.getCoordinate(), zero);
  Value from = arith::AddIOp::create(body, loc, number, sum.getCoordinate());
  SmallVector<Value> where = place(from, arith::SelectOp::create(body, loc, isFirst, one, zero));
  Value part = ReadOp::create(body, loc, start.getType(), workspace, where, Value(), IntegerAttr());
  YieldOp::create(body, loc, combine(body, sum.getIterArgs()[0], part));
  LogicalResult finished = finish(inner, share.last, sum.getResult(0));
  closeLoops();
  return finished;
}

LogicalResult SharedRows::build(Builder &b) {
  OpBuilder before = b;
  if (failed(fillAll(before)))
    return failure();
  prepare(b);
  return success(succeeded(makeShares(b)) && succeeded(makeEdges(b)));
}
