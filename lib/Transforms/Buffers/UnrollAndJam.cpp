// SPDX-License-Identifier: Apache-2.0
/// \file
/// A loop marked `jam` is replaced by copies of its body that share the loops inside.
///
/// The copies are the rows of one tile, which runs where one of them passes its guards. A row that does not reads what
/// a row reads that does, and writes nothing. Where coordinates rise from row to row, the first row speaks for the tile.
#include "WidenTiles.h"

namespace lacis {
#define GEN_PASS_DEF_LACISUNROLLANDJAM
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

class Jammer {
public:
  explicit Jammer(LoopOp loop) : loop(loop), copies(*loop.getJam()), b(loop) {}

  LogicalResult run() {
    SmallVector<Value> coordinates;
    for (int64_t n = 0; n < copies; ++n)
      coordinates.push_back(arith::ConstantIndexOp::create(b, loop.getLoc(), n));
    replicas[loop.getCoordinate()] = coordinates;
    active.assign(copies, Value());
    if (failed(block(*loop.getBlock())))
      return failure();
    loop.erase();
    return success();
  }

private:
  bool varies(Value value) const { return replicas.contains(value); }

  Value copyOf(Value value, int64_t n) {
    auto found = replicas.find(value);
    return found == replicas.end() ? shared.lookupOrDefault(value) : found->second[n];
  }

  SmallVector<Value> copiesOf(ValueRange values) {
    SmallVector<Value> result;
    for (Value value : values)
      for (int64_t n = 0; n < copies; ++n)
        result.push_back(copyOf(value, n));
    return result;
  }

  /// Values flattened by `copiesOf`, given back to what they stand for.
  void spread(ValueRange originals, ValueRange flat) {
    for (auto [number, original] : llvm::enumerate(originals))
      replicas[original] = llvm::to_vector(flat.slice(number * copies, copies));
  }

  LogicalResult block(Block &source) {
    for (Operation &op : source.without_terminator())
      if (failed(operation(op)))
        return failure();
    return success();
  }

  LogicalResult operation(Operation &op) {
    if (auto inner = dyn_cast<LoopOp>(op))
      return carry(op, inner.getBlock(), inner.getUpper(), 1);
    if (auto inner = dyn_cast<LevelLoopOp>(op))
      return carry(op, inner.getBlock(), inner.getParent(), 1 + inner.getNumDigits());
    if (auto guard = dyn_cast<scf::IfOp>(op))
      return branch(guard);
    if (llvm::none_of(op.getOperands(), [&](Value v) { return varies(v); }) && !isa<WriteOp, SetOp>(op)) {
      b.clone(op, shared);
      return success();
    }
    if (isa<WriteOp, SetOp>(op) && llvm::none_of(op.getOperands().drop_front(), [&](Value v) { return varies(v); }))
      return loop.emitError("jam: all copies of loop '") << loop.getName() << "' write one element";
    for (int64_t n = 0; n < copies; ++n)
      replicate(op, n);
    return success();
  }

  /// The index of the first row that is active; one is, wherever the tile runs.
  Value activeIndex(Value index) {
    Value found = copyOf(index, active[0] ? copies - 1 : 0);
    for (int64_t n = active[0] ? copies - 2 : -1; n >= 0; --n)
      found = arith::SelectOp::create(b, loop.getLoc(), active[n], copyOf(index, n), found);
    return found;
  }

  /// The indices of a row past the end become those of a row inside: loads need no branch.
  Value placeOf(Value index, int64_t n) {
    Value own = copyOf(index, n);
    if (!active[n] || !varies(index) || !index.getType().isIndex())
      return own;
    return arith::SelectOp::create(b, loop.getLoc(), active[n], own, activeIndex(index));
  }

  /// A coordinate is no smaller in a later row.
  bool rises(Value value) {
    if (!varies(value) || value == loop.getCoordinate())
      return true;
    Operation *op = value.getDefiningOp();
    bool isKnown = isa_and_nonnull<arith::AddIOp, arith::MulIOp>(op) ||
                   (isa_and_nonnull<arith::DivUIOp>(op) && !varies(op->getOperand(1)));
    return isKnown && llvm::all_of(op->getOperands(), [&](Value v) { return rises(v); });
  }

  /// Where a later row passes, the first one does.
  bool holdsForFirst(Value condition) {
    if (!varies(condition))
      return true;
    if (auto both = condition.getDefiningOp<arith::AndIOp>())
      return holdsForFirst(both.getLhs()) && holdsForFirst(both.getRhs());
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    return compare && compare.getPredicate() == arith::CmpIPredicate::slt && rises(compare.getLhs()) &&
           !varies(compare.getRhs());
  }

  /// Notes which rows pass a guard; true where one of them does.
  Value activate(Value condition, Location loc) {
    bool first = !active[0] && holdsForFirst(condition);
    Value any;
    for (int64_t n = first; n < copies; ++n) {
      Value row = copyOf(condition, n);
      active[n] = active[n] ? arith::AndIOp::create(b, loc, active[n], row).getResult() : row;
      any = any ? arith::OrIOp::create(b, loc, any, active[n]).getResult() : active[n];
    }
    return first ? copyOf(condition, 0) : any;
  }

  /// One copy of an operation; a row past the end writes nothing and reads what a row inside reads.
  void replicate(Operation &op, int64_t n) {
    bool reads = isa<ReadOp, CoordinateOp, BoundsOp, SeekOp, ValueOp, EntryOp>(op);
    if (auto locate = dyn_cast<LocateOp>(op))
      reads = locate.getDigits().empty(); // a link is stored
    IRMapping mapping;
    for (Value operand : op.getOperands())
      mapping.map(operand, reads ? placeOf(operand, n) : copyOf(operand, n));
    OpBuilder at = b;
    if (isa<WriteOp, SetOp>(op) && active[n])
      at = scf::IfOp::create(b, op.getLoc(), active[n], /*withElseRegion=*/false).getThenBodyBuilder();
    Operation *clone = at.clone(op, mapping);
    bool isFound = isa<CoordinateOp>(op) || llvm::any_of(op.getOperands(), [&](Value v) { return found.contains(v); });
    for (auto [before, after] : llvm::zip(op.getResults(), clone->getResults())) {
      replicas[before].push_back(after);
      if (isFound)
        found.insert(before);
    }
  }

  LogicalResult carry(Operation &op, Block *body, Value bound, unsigned leading) {
    if (varies(bound) && !isa<LevelLoopOp>(op))
      return loop.emitError("jam: the bounds of a loop inside depend on '") << loop.getName() << "'";
    if (varies(bound))
      return loop.emitError("jam: the positions of a level inside depend on '") << loop.getName() << "'";
    OperationState state(op.getLoc(), op.getName());
    unsigned fixed = op.getNumOperands() - op.getNumResults();
    for (Value operand : op.getOperands().take_front(fixed))
      state.operands.push_back(shared.lookupOrDefault(operand));
    state.addOperands(copiesOf(op.getOperands().drop_front(fixed)));
    state.addTypes(TypeRange(ValueRange(state.operands).drop_front(fixed)));
    state.attributes = op.getAttrs();
    auto *fresh = new Block;
    state.addRegion()->push_back(fresh);
    Operation *made = b.create(state);
    for (BlockArgument argument : body->getArguments().take_front(leading))
      shared.map(argument, fresh->addArgument(argument.getType(), argument.getLoc()));
    for (Type type : made->getResultTypes())
      fresh->addArgument(type, op.getLoc());
    SmallVector<Value> flat(fresh->getArguments().drop_front(leading));
    spread(SmallVector<Value>(body->getArguments().drop_front(leading)), flat);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(fresh);
    if (failed(block(*body)))
      return failure();
    YieldOp::create(b, op.getLoc(), copiesOf(body->getTerminator()->getOperands()));
    spread(op.getResults(), made->getResults());
    return success();
  }

  LogicalResult branch(scf::IfOp guard) {
    bool rows = varies(guard.getCondition());
    if (found.contains(guard.getCondition()))
      return loop.emitError("jam: a guard inside depends on the coordinates that loop '") << loop.getName() << "' finds";
    if (rows && guard.getNumResults() != 0)
      return loop.emitError("jam: a guarded value of loop '") << loop.getName() << "' cannot be shared";
    SmallVector<Type> types;
    for (Type type : guard.getResultTypes())
      types.append(copies, type);
    SmallVector<Value> before = active;
    Value runs = rows ? activate(guard.getCondition(), guard.getLoc()) : copyOf(guard.getCondition(), 0);
    auto made = scf::IfOp::create(b, guard.getLoc(), types, runs, /*addThenBlock=*/true,
                                  /*addElseBlock=*/guard.elseBlock() != nullptr);
    for (Region *region : {&guard.getThenRegion(), &guard.getElseRegion()}) {
      if (region->empty())
        continue;
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToEnd(&made->getRegion(region->getRegionNumber()).front());
      if (failed(block(region->front())))
        return failure();
      scf::YieldOp::create(b, guard.getLoc(), copiesOf(region->front().getTerminator()->getOperands()));
    }
    active = before;
    spread(guard.getResults(), made.getResults());
    return success();
  }

  LoopOp loop;
  int64_t copies;
  OpBuilder b;
  IRMapping shared;                           // values that all copies share
  DenseMap<Value, SmallVector<Value>> replicas; // one value a copy
  DenseSet<Value> found;                      // made of coordinates that were read from an array
  SmallVector<Value> active;                  // the row lies inside the axis; null where known
};

struct UnrollAndJam : lacis::impl::LacisUnrollAndJamBase<UnrollAndJam> {
  void runOnOperation() override {
    SmallVector<LoopOp> marked;
    getOperation().walk([&](LoopOp loop) {
      if (loop.getJam())
        marked.push_back(loop);
    });
    for (LoopOp loop : marked) {
      widenTiles(loop, *loop.getJam());
      if (failed(Jammer(loop).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
