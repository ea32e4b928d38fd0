// SPDX-License-Identifier: Apache-2.0
/// \file
/// group of shares: part[share] = s  -->  group of shares: segmented sum over the shares; part[group] = what crosses its edge
///
/// A unit of the group, a share of entries, finishes the rows that lie in it whole. Of the row that goes on behind it, it
/// adds its sum to what the units before carry on, unless the row begins in it; the unit in which a row ends finishes it.
/// The shares of `split_nnz` are from then on the groups: only rows that cross the edge of a group leave parts.
#include "ShareParts.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lacis;
using arith::CmpIPredicate;

namespace {

class Segments {
public:
  Segments(LoopOp units, ShareParts parts) : units(units), parts(parts), loc(parts.part.getLoc()), b(units) {}

  /// Why the loop is no group of shares, or nothing; finds what `run` needs.
  std::string analyse();
  void run();

private:
  /// The positions of a row.
  struct Row {
    Value lo, hi;
  };

  bool collectGuards(Operation *from, Operation *top);
  bool canHoist(Value value);
  Value hoist(Value value);
  Value valueIn(Value value, IRMapping &mapping, OpBuilder &at);
  void cloneUntil(Block *block, Operation *end, IRMapping &mapping, OpBuilder &at);
  Row rowAt(Value number, IRMapping &mapping);
  void finish(OpBuilder &at, IRMapping mapping, Value row, Value sum);
  void leave(OpBuilder &at, IRMapping mapping, Value begins, Value sum);
  LoopOp sumRows(IRMapping &mapping);
  void carryOn(LoopOp group, LoopOp rows, IRMapping &mapping);
  void regroupParts();
  /// The first share of a row, of which the nest after reads a part: its position by the size of a share.
  arith::DivUIOp shareOfPart() {
    auto share = parts.read.getIndices()[0].getDefiningOp<arith::AddIOp>();
    return share ? share.getLhs().getDefiningOp<arith::DivUIOp>() : arith::DivUIOp();
  }

  Value constant(OpBuilder &at, int64_t value) { return arith::ConstantIndexOp::create(at, loc, value); }
  Value compare(CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
  }
  Value both(Value lhs, Value rhs) { return arith::AndIOp::create(b, loc, lhs, rhs); }
  Value added(Value carried, Value value) { return combine(b, loc, *reductionOf(parts.sum), carried, value); }

  LoopOp units;
  ShareParts parts;
  Location loc;
  OpBuilder b;
  SmallVector<scf::IfOp> guards; // around the rows and the sum, outermost first
  scf::IfOp some;                // the row has entries
  BoundsOp bounds;               // of the row
  OwnerOp lastRow;
  Value first, end; // the positions of a share
  Value group;      // its number
  int64_t count = 0, entries = 0;
  Value neutral, groupNumber, groupFirst;
};

} // namespace

/// The guards from an operation up to `top`, outermost first; false where other operations are between.
bool Segments::collectGuards(Operation *from, Operation *top) {
  SmallVector<scf::IfOp> found;
  for (Operation *parent = from->getParentOp(); parent != top; parent = parent->getParentOp()) {
    auto guard = dyn_cast<scf::IfOp>(parent);
    if (!guard || guard.getNumResults() != 0 || guard.elseBlock())
      return false;
    found.push_back(guard);
  }
  guards.append(found.rbegin(), found.rend());
  return true;
}

/// The value is made of what stands outside of the group.
bool Segments::canHoist(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return !units->isAncestor(value.getParentBlock()->getParentOp());
  return !units->isProperAncestor(op) ||
         (isPure(op) && op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), [&](Value v) { return canHoist(v); }));
}

std::string Segments::analyse() {
  std::string name = units.getName().str(), no = "'segment' is for a group of shares of known number; loop '" + name + "' ";
  if (parts.rows->getParentOfType<LoopOp>() != units)
    return no + "is not the innermost around the rows of a share, see reorder";
  if (isMarked(units))
    return no + "is marked already";
  // share = group * count + unit
  Value share = parts.part.getIndices()[0];
  auto whole = share.getDefiningOp<arith::AddIOp>();
  auto scaled = whole ? whole.getLhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  std::optional<int64_t> trip = units.getTrip();
  if (!trip || !scaled || whole.getRhs() != units.getCoordinate() || getConstantIntValue(scaled.getRhs()) != trip)
    return no + "is none; split it and take the inner loop";
  auto choice = parts.choice.getCondition().getDefiningOp<arith::AndIOp>();
  auto begins = choice ? choice.getLhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  auto within = choice ? choice.getRhs().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  auto size = begins ? begins.getRhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  bounds = begins ? begins.getLhs().getDefiningOp<BoundsOp>() : BoundsOp();
  some = dyn_cast<scf::IfOp>(parts.choice->getParentOp());
  auto sum = parts.part.getValue().getDefiningOp<LoopOp>();
  auto met = parts.rows.getUpper().getDefiningOp<arith::AddIOp>();
  auto distance = met ? met.getLhs().getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  lastRow = distance ? distance.getLhs().getDefiningOp<OwnerOp>() : OwnerOp();
  if (!within || !size || !bounds || !some || !sum || !lastRow || !shareOfPart() || !canHoist(sum.getInits()[0]) ||
      !collectGuards(parts.rows, units) || !collectGuards(some, parts.rows))
    return no + "has shares that another step has changed";
  Value shares = parts.workspace().getSizes()[0];
  llvm::erase_if(guards, [&](scf::IfOp guard) { // a share past the end has no entries
    auto inside = guard.getCondition().getDefiningOp<arith::CmpIOp>();
    return inside && inside.getLhs() == share && inside.getRhs() == shares;
  });
  group = scaled.getLhs();
  if (!canHoist(group) || !llvm::all_of(guards, [&](scf::IfOp guard) { return canHoist(guard.getCondition()); }))
    return no + "has a guard inside that depends on the row (blocks that do not divide the rows)";
  first = begins.getRhs(), end = within.getRhs();
  count = *trip, entries = *getConstantIntValue(size.getRhs());
  neutral = sum.getInits()[0];
  return "";
}

/// The value, made again before the group where it is made inside.
Value Segments::hoist(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !units->isProperAncestor(op))
    return value;
  SmallVector<Value> operands = llvm::map_to_vector(op->getOperands(), [&](Value v) { return hoist(v); });
  Operation *clone = b.clone(*op);
  clone->setOperands(operands);
  return clone->getResult(cast<OpResult>(value).getResultNumber());
}

/// The value in a copy of the rows' body, made again there with what it is made of.
Value Segments::valueIn(Value value, IRMapping &mapping, OpBuilder &at) {
  Operation *op = value.getDefiningOp();
  if (mapping.contains(value) || !op || !units->isProperAncestor(op))
    return mapping.lookupOrDefault(value);
  for (Value operand : op->getOperands())
    mapping.map(operand, valueIn(operand, mapping, at));
  at.clone(*op, mapping);
  return mapping.lookup(value);
}

/// Copies what stands in the block before `end`, or before the guards around it, which are left out.
void Segments::cloneUntil(Block *block, Operation *end, IRMapping &mapping, OpBuilder &at) {
  for (Operation &op : block->without_terminator()) {
    if (&op == end)
      return;
    if (op.isProperAncestor(end))
      return cloneUntil(cast<scf::IfOp>(op).thenBlock(), end, mapping, at);
    at.clone(op, mapping);
  }
}

Segments::Row Segments::rowAt(Value number, IRMapping &mapping) {
  IRMapping own = mapping;
  own.map(parts.row.getResult(), number);
  return {valueIn(bounds.getLo(), own, b), valueIn(bounds.getHi(), own, b)};
}

/// What a share does with the sum of a row that lies in it whole.
void Segments::finish(OpBuilder &at, IRMapping mapping, Value row, Value sum) {
  mapping.map(parts.row.getResult(), row);
  mapping.map(parts.part.getValue(), sum);
  for (Operation &op : parts.choice.thenBlock()->without_terminator()) {
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!op.isAncestor(operand.getParentBlock()->getParentOp()))
          mapping.map(operand, valueIn(operand, mapping, at));
    });
    at.clone(op, mapping);
  }
}

/// A part of a row for the nest after the groups.
void Segments::leave(OpBuilder &at, IRMapping mapping, Value begins, Value sum) {
  SmallVector<Value> place{groupNumber, arith::SelectOp::create(at, loc, begins, constant(at, 1), constant(at, 0))};
  for (Value index : ValueRange(parts.part.getIndices()).drop_front(2))
    place.push_back(valueIn(index, mapping, at));
  WriteOp::create(at, loc, sum, parts.part.getTensor(), place, Value(), IntegerAttr());
}

/// The rows of a unit: finishes those in it, and answers the sums of the one that ends and of the one that goes on.
LoopOp Segments::sumRows(IRMapping &mapping) {
  auto rows = LoopOp::create(b, parts.rows.getLoc(), parts.rows.getLoopName(), mapping.lookupOrDefault(parts.rows.getUpper()),
                             ValueRange{neutral, neutral});
  OpBuilder::InsertionGuard restore(b);
  b.setInsertionPointToEnd(rows.getBlock());
  IRMapping own = mapping;
  own.map(parts.rows.getCoordinate(), rows.getCoordinate());
  cloneUntil(parts.rows.getBlock(), some, own, b);
  Value sum = own.lookup(parts.part.getValue()), lo = own.lookup(bounds.getLo()), hi = own.lookup(bounds.getHi());
  Value from = own.lookupOrDefault(first), to = own.lookupOrDefault(end);
  Value whole = both(valueIn(some.getCondition(), own, b), valueIn(parts.choice.getCondition(), own, b));
  auto inside = scf::IfOp::create(b, loc, whole, /*withElseRegion=*/false);
  OpBuilder then = inside.getThenBodyBuilder();
  finish(then, own, own.lookup(parts.row.getResult()), sum);
  Value ends = both(both(compare(CmpIPredicate::slt, lo, from), compare(CmpIPredicate::sgt, hi, from)),
                    compare(CmpIPredicate::sle, hi, to));
  Value goesOn = compare(CmpIPredicate::sgt, hi, to);
  Value head = arith::SelectOp::create(b, loc, ends, sum, rows.getIterArgs()[0]);
  Value tail = arith::SelectOp::create(b, loc, goesOn, sum, rows.getIterArgs()[1]);
  YieldOp::create(b, loc, ValueRange{head, tail});
  return rows;
}

/// What a unit carries on, and what becomes of the row that the unit before carried to it.
void Segments::carryOn(LoopOp group, LoopOp rows, IRMapping &mapping) {
  Value from = mapping.lookupOrDefault(first), to = mapping.lookupOrDefault(end), carried = group.getIterArgs()[0];
  Value top = mapping.lookup(parts.firstRow().getResult());
  Row head = rowAt(top, mapping), tail = rowAt(mapping.lookup(lastRow.getResult()), mapping);
  Value goesOn = compare(CmpIPredicate::sgt, tail.hi, to);
  Value continues = both(goesOn, compare(CmpIPredicate::slt, tail.lo, from));
  Value next = added(carried, rows.getResult(1));
  next = arith::SelectOp::create(b, loc, continues, next, rows.getResult(1));
  Value total = added(carried, rows.getResult(0));
  Value ends = both(both(compare(CmpIPredicate::slt, head.lo, from), compare(CmpIPredicate::sgt, head.hi, from)),
                    compare(CmpIPredicate::sle, head.hi, to));
  auto ended = scf::IfOp::create(b, loc, ends, /*withElseRegion=*/false);
  Value last = both(goesOn, compare(CmpIPredicate::eq, group.getCoordinate(), constant(b, count - 1)));
  auto edge = scf::IfOp::create(b, loc, last, /*withElseRegion=*/false);
  YieldOp::create(b, loc, next);
  b.setInsertionPointToStart(ended.thenBlock());
  auto inGroup = scf::IfOp::create(b, loc, compare(CmpIPredicate::sge, head.lo, groupFirst), /*withElseRegion=*/true);
  OpBuilder then = inGroup.getThenBodyBuilder(), otherwise = inGroup.getElseBodyBuilder();
  finish(then, mapping, top, total);
  leave(otherwise, mapping, arith::ConstantOp::create(otherwise, loc, otherwise.getBoolAttr(false)), total);
  b.setInsertionPointToStart(edge.thenBlock());
  leave(b, mapping, compare(CmpIPredicate::sge, tail.lo, groupFirst), next);
}

/// The nest after the shares and the workspace are those of shares as large as the groups.
void Segments::regroupParts() {
  WorkspaceOp workspace = parts.workspace();
  b.setInsertionPoint(workspace);
  Value groups = arith::CeilDivUIOp::create(b, loc, workspace.getSizes()[0], constant(b, count));
  workspace.getSizesMutable()[0].assign(groups);
  Value size = constant(b, count * entries);
  Value before = shareOfPart().getRhs();
  LoopOp nest = outermostLoop(parts.sum);
  before.replaceUsesWithIf(size, [&](OpOperand &use) { return nest->isProperAncestor(use.getOwner()); });
}

void Segments::run() {
  for (scf::IfOp guard : guards) {
    Value condition = hoist(guard.getCondition());
    auto outside = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(outside.thenBlock());
  }
  neutral = hoist(neutral);
  groupNumber = hoist(group);
  groupFirst = arith::MulIOp::create(b, loc, groupNumber, constant(b, count * entries));
  auto made = LoopOp::create(b, units.getLoc(), units.getLoopName(), units.getUpper(), neutral);
  made.setScan(true);
  b.setInsertionPointToEnd(made.getBlock());
  IRMapping mapping;
  mapping.map(units.getCoordinate(), made.getCoordinate());
  cloneUntil(units.getBlock(), parts.rows, mapping, b);
  LoopOp rows = sumRows(mapping);
  carryOn(made, rows, mapping);
  regroupParts();
  units.erase();
}

static std::string objection(LoopOp loop, Nest &) {
  std::optional<ShareParts> parts = partsOf(outermostLoop(loop));
  if (!parts || loop.getNumResults() != 0)
    return "'segment' is for a group of shares of entries, which hold parts of rows; there are none here";
  return Segments(loop, *parts).analyse();
}

static void sumSegments(LoopOp loop, Nest &, Location) {
  Segments segments(loop, *partsOf(outermostLoop(loop)));
  (void)segments.analyse();
  segments.run();
}

static const bool registered = registerRaceStrategy({"segment", objection, sumSegments, /*inGroups=*/true});
