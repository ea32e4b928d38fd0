// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loops over coordinates in the place of one over the positions under one parent.
///
/// Strips have a fixed size, parts a fixed number: TACO's `pos` with `split`, and with `divide` (Senanayake et al., 2020).
#include "PositionUnits.h"

#include "lacis/Dialect/Lacis/IR/LacisAttrs.h"
#include "lacis/Dialect/Lacis/IR/RaceStrategy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

/// The body of `entries` at one of its positions, and what it carries on: where that is padding, `carried`.
static SmallVector<Value> moveBody(OpBuilder &b, LevelLoopOp entries, Value lo, Value position, ValueRange carried) {
  Location loc = entries.getLoc();
  SmallVector<Type> digits(entries.getNumDigits(), b.getIndexType());
  auto found =
      CoordinateOp::create(b, loc, digits, b.getI1Type(), entries.getTensor(), entries.getLevel(), lo, position);
  entries.getPosition().replaceAllUsesWith(position);
  for (auto [before, after] : llvm::zip(entries.getCoordinates(), found.getDigits()))
    before.replaceAllUsesWith(after);
  for (auto [before, after] : llvm::zip(entries.getIterArgs(), carried))
    before.replaceAllUsesWith(after);
  Block *source = entries.getBlock();
  SmallVector<Value> next(source->getTerminator()->getOperands());
  source->getTerminator()->erase();
  if (!formatOf(entries.getTensor()).getLevels()[entries.getLevel()].getCoordinate().isPadded()) {
    b.getInsertionBlock()->getOperations().splice(b.getInsertionPoint(), source->getOperations());
    return next;
  }
  auto valid = scf::IfOp::create(b, loc, entries.getResultTypes(), found.getValid(), /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  Block *then = valid.thenBlock();
  then->getOperations().splice(then->end(), source->getOperations());
  OpBuilder inThen = OpBuilder::atBlockEnd(then), padding = OpBuilder::atBlockEnd(valid.elseBlock());
  scf::YieldOp::create(inThen, loc, next);
  scf::YieldOp::create(padding, loc, carried);
  return SmallVector<Value>(valid.getResults());
}

LoopOp lacis::walkRun(OpBuilder &b, LevelLoopOp entries, const LoopName &name, Value lo, Value from, Value length,
                      ValueRange carried) {
  Location loc = entries.getLoc();
  auto run = LoopOp::create(b, loc, name, length, carried, entries.getReduce());
  OpBuilder body = OpBuilder::atBlockEnd(run.getBlock());
  Value position = arith::AddIOp::create(body, loc, from, run.getCoordinate());
  SmallVector<Value> own(run.getIterArgs());
  YieldOp::create(body, loc, moveBody(body, entries, lo, position, own));
  return run;
}

/// Each round writes the entry that it is at: parts have nothing to bring together.
static bool setsEntries(LevelLoopOp entries) {
  auto isSet = [](SetOp) { return WalkResult::interrupt(); };
  return entries.getNumResults() == 0 && entries->walk(isSet).wasInterrupted();
}

std::string lacis::objectionToCuts(LevelLoopOp entries) {
  std::string loop = "loop '" + entries.getName().str() + "' ";
  if (entries.getNumResults() == 0 && !setsEntries(entries))
    return loop + "carries no sum";
  if (!isStateless(entries))
    return loop + "walks coordinates that follow from those before them; they have no strips";
  if (entries.getUnroll() || entries.getPipeline())
    return loop + "is marked already";
  return "";
}

static BoundsOp boundsOf(OpBuilder &b, LevelLoopOp entries) {
  Type index = b.getIndexType();
  return BoundsOp::create(b, entries.getLoc(), index, index, entries.getTensor(), entries.getLevel(),
                          entries.getParent());
}

/// `made` stands for the loop.
static LoopOp replaceBy(LevelLoopOp entries, LoopOp made) {
  entries.replaceAllUsesWith(made);
  entries.erase();
  return made;
}

namespace {
/// The entries of a row, how many there are, and that number divided by another, rounded up.
struct Division {
  Division(OpBuilder &b, LevelLoopOp entries, int64_t number, Location loc) : bounds(boundsOf(b, entries)) {
    count = arith::SubIOp::create(b, loc, bounds.getHi(), bounds.getLo());
    by = arith::ConstantIndexOp::create(b, loc, number);
    quotient = arith::CeilDivUIOp::create(b, loc, count, by);
  }

  BoundsOp bounds;
  Value count, by, quotient;
};
} // namespace

/// The loop over the parts of a row, which carries what the loop over its entries does.
static LoopOp loopOverParts(OpBuilder &b, LevelLoopOp entries, Value parts) {
  return LoopOp::create(b, entries.getLoc(), entries.getLoopName() + "0", parts, entries.getInits(), entries.getReduce());
}

LoopOp lacis::cutStrips(LevelLoopOp entries, int64_t factor, Location loc) {
  OpBuilder b(entries);
  auto [bounds, count, size, strips] = Division(b, entries, factor, loc);
  LoopOp outer = loopOverParts(b, entries, strips);
  OpBuilder inOuter = OpBuilder::atBlockEnd(outer.getBlock());
  auto inner = LoopOp::create(inOuter, entries.getLoc(), entries.getLoopName() + "1", size,
                              SmallVector<Value>(outer.getIterArgs()), entries.getReduce());
  YieldOp::create(inOuter, loc, inner.getResults());
  OpBuilder body = OpBuilder::atBlockEnd(inner.getBlock());
  Value first = arith::MulIOp::create(body, loc, outer.getCoordinate(), size);
  Value number = arith::AddIOp::create(body, loc, first, inner.getCoordinate());
  Value inside = arith::CmpIOp::create(body, loc, arith::CmpIPredicate::slt, number, count);
  Value position = arith::AddIOp::create(body, loc, bounds.getLo(), number);
  SmallVector<Value> carried(inner.getIterArgs());
  auto guard = scf::IfOp::create(body, loc, entries.getResultTypes(), inside, /*addThenBlock=*/true,
                                 /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  scf::YieldOp::create(then, loc, moveBody(then, entries, bounds.getLo(), position, carried));
  scf::YieldOp::create(otherwise, loc, carried);
  YieldOp::create(body, loc, guard.getResults());
  return replaceBy(entries, outer);
}

LoopOp lacis::cutParts(LevelLoopOp entries, int64_t parts, Location loc) {
  OpBuilder b(entries);
  auto [bounds, count, units, size] = Division(b, entries, parts, loc);
  LoopOp outer = loopOverParts(b, entries, units);
  OpBuilder inOuter = OpBuilder::atBlockEnd(outer.getBlock());
  auto upToEnd = [&](Value position) -> Value { return arith::MinSIOp::create(inOuter, loc, position, bounds.getHi()); };
  Value skipped = arith::MulIOp::create(inOuter, loc, outer.getCoordinate(), size);
  Value from = upToEnd(arith::AddIOp::create(inOuter, loc, bounds.getLo(), skipped));
  Value to = upToEnd(arith::AddIOp::create(inOuter, loc, from, size));
  Value length = arith::SubIOp::create(inOuter, loc, to, from);
  auto inner = walkRun(inOuter, entries, entries.getLoopName() + "1", bounds.getLo(), from, length,
                       SmallVector<Value>(outer.getIterArgs()));
  YieldOp::create(inOuter, loc, inner.getResults());
  return replaceBy(entries, outer);
}

/// The name of the tensor that the sum becomes an element of, in quotes.
static std::string nameOfSummed(Operation *sum) {
  SmallVector<Operation *> reached(sum->user_begin(), sum->user_end());
  for (size_t next = 0; next < reached.size(); ++next) {
    Operation *op = reached[next];
    auto write = dyn_cast<WriteOp>(op);
    auto argument = write ? dyn_cast<BlockArgument>(write.getTensor()) : BlockArgument();
    auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
    if (function)
      if (auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "lacis.name"))
        return "of '" + name.getValue().str() + "'";
    Operation *giver = op->hasTrait<OpTrait::IsTerminator>() ? op->getParentOp() : op;
    if (!write && !isa<func::FuncOp>(giver) && !llvm::is_contained(ArrayRef(reached).take_front(next), giver))
      reached.append(giver->user_begin(), giver->user_end());
  }
  return "of an output";
}

/// What the strategies of `race` say of parts of the positions: they are asked about a copy of the function.
static std::string strategiesForParts(Nest &nest, StringRef name, Location loc) {
  func::FuncOp trial = nest.getFunction().clone();
  Nest copy(trial);
  LoopOp units = cutParts(cast<LevelLoopOp>(copy.findAll(name).front()), 2, loc);
  std::string names = strategiesFor(units, copy);
  trial.erase();
  return names;
}

std::string lacis::objectionToPositions(Nest &nest, StringRef name) {
  SmallVector<Operation *> found = nest.findAll(name);
  auto entries = found.size() == 1 ? dyn_cast<LevelLoopOp>(found[0]) : LevelLoopOp();
  if (!entries || entries.getNumResults() == 0)
    return "";
  std::string own = entries.getName().str();
  std::string why = "loop '" + own + "' carries the sum " + nameOfSummed(entries) + " over the positions of a level";
  if (std::string cuts = objectionToCuts(entries); !cuts.empty())
    return why + ", and " + cuts;
  return why + "; split_nnz with 'parts' makes units of these, '" + own + "0', and race with a strategy brings their sums " +
         "together: " + strategiesForParts(nest, own, entries.getLoc()) + " would do";
}
