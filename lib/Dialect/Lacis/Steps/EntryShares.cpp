// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rewriting of a nest over rows to one over equal shares of all entries.
#include "EntryShares.h"
#include "PositionUnits.h"

#include "lacis/Dialect/Lacis/IR/Workspace.h"

using namespace mlir;
using namespace lacis;
using arith::CmpIPredicate;

EntryShares::EntryShares(LoopOp rows, LevelLoopOp entries, int64_t factor, const LoopName &shares, Location loc)
    : rows(rows), entries(entries), reduction(*reductionOf(entries)), factor(factor), loc(loc),
      chain(perfectChain(outermostLoop(rows))), name(joined(loc.getContext(), rows.getLoopName(), entries.getLoopName())),
      sharesName(shares) {}

Value EntryShares::constant(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }

Value EntryShares::compare(OpBuilder &b, CmpIPredicate predicate, Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
}

EntryShares::Row EntryShares::rowOf(OpBuilder &b, LevelLoopOp loop) {
  auto bounds = BoundsOp::create(b, loc, indexType(), indexType(), loop.getTensor(), loop.getLevel(), loop.getParent());
  return {bounds.getLo(), bounds.getHi(), compare(b, CmpIPredicate::slt, bounds.getLo(), bounds.getHi())};
}

SmallVector<Value> EntryShares::place(Value share, Value begins, ArrayRef<LoopOp> others) {
  SmallVector<Value> indices{share, begins};
  for (LoopOp loop : others)
    indices.push_back(loop.getCoordinate());
  return indices;
}

/// What stands in the block after `op`, but for the terminator, moves into `to`.
static void moveRest(Operation *op, Block *to) {
  Block *from = op->getBlock();
  to->getOperations().splice(to->begin(), from->getOperations(), std::next(op->getIterator()), std::prev(from->end()));
}

static SmallVector<LoopOp> without(ArrayRef<LoopOp> chain, LoopOp loop) {
  SmallVector<LoopOp> others(chain);
  llvm::erase(others, loop);
  return others;
}

void EntryShares::makeWorkspace() {
  OpBuilder b(chain.front());
  size = constant(b, factor);
  Value positions = PositionsOp::create(b, loc, indexType(), entries.getTensor(), entries.getLevel());
  count = arith::CeilDivUIOp::create(b, loc, positions, size);
  SmallVector<Value> sizes{count, constant(b, 2)};
  for (LoopOp loop : without(chain, rows))
    sizes.push_back(loop.getUpper());
  workspace = lacis::makeWorkspace(b, loc, entries.getResult(0).getType(), sizes);
}

/// A copy of the nest: rows without entries, and rows that several shares meet, whose parts it adds in their order.
void EntryShares::makeFinish() {
  OpBuilder after(chain.front());
  LoopOp before = lastBeside(chain.front());
  after.setInsertionPointAfter(before);
  IRMapping mapping;
  auto top = cast<LoopOp>(after.clone(*chain.front(), mapping));
  for (LoopOp loop : perfectChain(top))
    if (before != chain.front()) // a launch that others share is over before
      loop.setFollows(true);
  auto parts = mapping.lookup(entries.getResult(0)).getDefiningOp<LevelLoopOp>();
  auto ownRows = cast<LoopOp>(mapping.lookup(rows.getCoordinate()).getParentBlock()->getParentOp());
  SmallVector<LoopOp> others = without(perfectChain(top), ownRows);
  PathAttr path = nestOf(loc.getContext(), name);
  top->walk([&](LoopOpInterface loop) { loop.setPathAttr(join(path, loop.getPathAttr())); });
  OpBuilder b(parts);
  Row row = rowOf(b, parts);
  Value one = constant(b, 1), zero = constant(b, 0);
  Value first = arith::DivUIOp::create(b, loc, row.lo, size);
  Value last = arith::DivUIOp::create(b, loc, arith::SubIOp::create(b, loc, row.hi, one), size);
  Value several = compare(b, CmpIPredicate::ne, first, last), none = compare(b, CmpIPredicate::sge, row.lo, row.hi);
  Value shares = arith::AddIOp::create(b, loc, arith::SubIOp::create(b, loc, last, first), one);
  shares = arith::SelectOp::create(b, loc, none, zero, shares);
  auto guard = scf::IfOp::create(b, loc, arith::OrIOp::create(b, loc, none, several), /*withElseRegion=*/false);
  moveRest(guard, guard.thenBlock()); // the loop over entries, and what finishes the row
  OpBuilder inside = OpBuilder::atBlockBegin(guard.thenBlock());
  auto sum = LoopOp::create(inside, loc, {sharesName.letters, join(path, sharesName.path)}, shares, parts.getInits(), reduction);
  OpBuilder body = OpBuilder::atBlockEnd(sum.getBlock());
  Value share = arith::AddIOp::create(body, loc, first, sum.getCoordinate());
  Value begins = arith::SelectOp::create(body, loc, compare(body, CmpIPredicate::eq, sum.getCoordinate(), zero), one, zero);
  Value part = ReadOp::create(body, loc, sum.getResult(0).getType(), workspace, place(share, begins, others), Value(),
                              IntegerAttr());
  YieldOp::create(body, loc, combine(body, loc, reduction, sum.getIterArgs()[0], part));
  parts.getResult(0).replaceAllUsesWith(sum.getResult(0));
  parts.erase();
}

/// The sum of the row's entries between `first` and `end`.
Value EntryShares::shareOfRow(OpBuilder &b, const Row &row, Value first, Value end) {
  Value from = arith::MaxSIOp::create(b, loc, row.lo, first), to = arith::MinSIOp::create(b, loc, row.hi, end);
  Value length = arith::SubIOp::create(b, loc, to, from);
  LoopOp loop = walkRun(b, entries, entries.getLoopName(), row.lo, from, length, entries.getInits());
  if (auto unroll = entries.getUnrollAttr())
    loop.setUnrollAttr(unroll);
  return loop.getResult(0);
}

/// The nest over shares: in each the rows it meets, which it finishes where they lie in it whole.
void EntryShares::makeShares() {
  OpBuilder at(rows);
  auto shares = LoopOp::create(at, rows.getLoc(), sharesName, count);
  shares.setMeets(true);
  SmallVector<LoopOp> others = without(chain, rows);
  bool isLast = rows == chain.back();
  shares.getBlock()->getOperations().splice(shares.getBlock()->end(), rows.getBlock()->getOperations());
  Block *innermost = isLast ? shares.getBlock() : chain.back().getBlock();
  OpBuilder b = OpBuilder::atBlockBegin(innermost);
  Value first = arith::MulIOp::create(b, loc, shares.getCoordinate(), size);
  Value end = arith::AddIOp::create(b, loc, first, size);
  auto owner = [&](Value position) {
    return OwnerOp::create(b, loc, indexType(), entries.getTensor(), entries.getLevel(), position, rows.getUpper());
  };
  Value one = constant(b, 1), top = owner(first);
  Value bottom = factor == 1 ? top : owner(arith::SubIOp::create(b, loc, end, one));
  Value met = arith::AddIOp::create(b, loc, arith::SubIOp::create(b, loc, bottom, top), one);
  auto own = LoopOp::create(b, rows.getLoc(), rows.getLoopName(), met);
  moveRest(own, own.getBlock());
  OpBuilder body = OpBuilder::atBlockEnd(own.getBlock());
  YieldOp::create(body, loc);
  body.setInsertionPointToStart(own.getBlock());
  rows.getCoordinate().replaceAllUsesWith(arith::AddIOp::create(body, loc, top, own.getCoordinate()));
  rows.erase();

  OpBuilder m(entries);
  Row row = rowOf(m, entries);
  Value sum = shareOfRow(m, row, first, end);
  entries.getResult(0).replaceAllUsesWith(sum);
  Value begins = compare(m, CmpIPredicate::sge, row.lo, first);
  Value whole = arith::AndIOp::create(m, loc, begins, compare(m, CmpIPredicate::sle, row.hi, end));
  auto some = scf::IfOp::create(m, loc, row.some, /*withElseRegion=*/false);
  OpBuilder inSome = some.getThenBodyBuilder();
  auto finish = scf::IfOp::create(inSome, loc, whole, /*withElseRegion=*/true);
  moveRest(entries, finish.thenBlock());
  entries.erase();
  OpBuilder part = finish.getElseBodyBuilder();
  Value slot = arith::SelectOp::create(part, loc, begins, constant(part, 1), constant(part, 0));
  WriteOp::create(part, loc, sum, workspace, place(shares.getCoordinate(), slot, others), Value(), IntegerAttr());
}

void EntryShares::run() {
  makeWorkspace();
  makeFinish();
  makeShares();
}
