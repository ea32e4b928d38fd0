// SPDX-License-Identifier: Apache-2.0
/// \file
/// A loop marked `vectorize` becomes lanes: what depends on its coordinate turns into vectors.
///
/// The loops inside stay as they are, so their bounds must not depend on the lane. A guard of the
/// coordinate becomes the number of active lanes of the accesses under it. A loop that carries a sum
/// carries one sum a lane, through the loops around it that pass the sum on; they are added up at the end. Two marked
/// loops, one in the other, copy a tile to its transpose.
#include "Combine.h"
#include "TransposeTile.h"
#include "WidenTiles.h"
#include "lacis/Dialect/Lacis/IR/Guards.h"
#include "lacis/Dialect/Lacis/IR/Nest.h"
#include "lacis/Transforms/Passes.h"

namespace lacis {
#define GEN_PASS_DEF_LACISVECTORIZELOOPS
#include "lacis/Transforms/Passes.h.inc"
} // namespace lacis

using namespace mlir;
using namespace lacis;

namespace {

class Vectorizer {
public:
  explicit Vectorizer(LoopOp loop) : loop(loop), width(*loop.getVectorize()), b(loop) {}

  LogicalResult run() {
    if (loop.getNumResults() != 0)
      return sumLanes();
    Value zero = arith::ConstantIndexOp::create(b, loop.getLoc(), 0);
    scalars.map(loop.getCoordinate(), zero);
    consecutive.insert(loop.getCoordinate());
    if (failed(block(*loop.getBlock(), {})))
      return failure();
    loop.erase();
    return success();
  }

private:
  LogicalResult sumLanes() {
    Operation *combiner = combinerOf(loop);
    std::optional<vector::CombiningKind> kind = combiner ? kindOf(combiner) : std::nullopt;
    std::optional<TypedAttr> neutral = combiner ? arith::getNeutralElement(combiner) : std::nullopt;
    SmallVector<LoopOp> chain = carriedChain(loop);
    if (!kind || !neutral || chain.back() != loop)
      return loop.emitError("vectorize: the rounds of loop '") << loop.getName() << "' are not added up by one operation";
    auto *first = llvm::find_if(llvm::reverse(chain), [](LoopOp other) { return other.getBind().has_value(); }).base();
    LoopOp top = *first;
    b.setInsertionPoint(top);
    auto type = VectorType::get({width}, loop.getResultTypes()[0]);
    Value lanes = arith::ConstantOp::create(b, loop.getLoc(), DenseElementsAttr::get(type, Attribute(*neutral)));
    SmallVector<LoopOp> made;
    for (LoopOp outer : llvm::make_range(first, std::prev(chain.end()))) {
      auto copy = LoopOp::create(b, outer.getLoc(), outer.getName(), outer.getUpper(), lanes);
      copy.setUnrollAttr(outer.getUnrollAttr());
      scalars.map(outer.getCoordinate(), copy.getCoordinate());
      lanes = copy.getIterArgs()[0];
      b.setInsertionPointToEnd(copy.getBlock());
      made.push_back(copy);
    }
    scalars.map(loop.getCoordinate(), arith::ConstantIndexOp::create(b, loop.getLoc(), 0));
    consecutive.insert(loop.getCoordinate());
    vectors[loop.getIterArgs()[0]] = lanes;
    if (failed(block(*loop.getBlock(), {})))
      return failure();
    Value result = asVector(loop.getBlock()->getTerminator()->getOperand(0));
    for (LoopOp copy : llvm::reverse(made)) {
      YieldOp::create(b, loop.getLoc(), result);
      result = copy.getResult(0);
      b.setInsertionPointAfter(copy);
    }
    Value sum = vector::ReductionOp::create(b, loop.getLoc(), *kind, result, top.getInits()[0],
                                            arith::FastMathFlags::reassoc);
    top.getResult(0).replaceAllUsesWith(sum);
    top.erase();
    return success();
  }

  LogicalResult block(Block &source, Value count) {
    for (Operation &op : source.without_terminator())
      if (failed(operation(op, count)))
        return failure();
    return success();
  }

  bool isConsecutive(Value value) const { return consecutive.contains(value); }
  bool varies(Value value) const { return isConsecutive(value) || vectors.contains(value) || counts.contains(value); }

  Value asVector(Value value) {
    if (Value vector = vectors.lookup(value))
      return vector;
    if (Value lanes = counts.lookup(value))
      return LanesOp::create(b, loop.getLoc(), VectorType::get({width}, b.getI1Type()), lanes);
    auto type = VectorType::get({width}, value.getType());
    return vector::BroadcastOp::create(b, loop.getLoc(), type, scalars.lookupOrDefault(value));
  }

  LogicalResult operation(Operation &op, Value count) {
    if (auto inner = dyn_cast<LoopOp>(op))
      return carry(op, inner.getBlock(), inner.getUpper(), 1, count);
    if (auto inner = dyn_cast<LevelLoopOp>(op))
      return carry(op, inner.getBlock(), inner.getParent(), 1 + inner.getNumDigits(), count);
    if (auto guard = dyn_cast<scf::IfOp>(op))
      return branch(guard, count);
    if (auto read = dyn_cast<ReadOp>(op))
      return access(op, read.getIndices(), read.getResult(), count);
    if (auto write = dyn_cast<WriteOp>(op))
      return access(op, write.getIndices(), {}, count);
    if (isa<LocateOp, ValueOp, EntryOp, SetOp>(op) && llvm::any_of(op.getOperands(), [&](Value v) { return varies(v); }))
      return position(op, count);
    if (llvm::none_of(op.getOperands(), [&](Value v) { return varies(v); })) {
      b.clone(op, scalars);
      return success();
    }
    return arithmetic(op);
  }

  /// Coordinates stay consecutive under addition; a comparison with a bound counts the active lanes.
  LogicalResult arithmetic(Operation &op) {
    if (isa<arith::AddIOp>(op) && isConsecutive(op.getOperand(0)) != isConsecutive(op.getOperand(1)) &&
        op.getResult(0).getType().isIndex()) {
      b.clone(op, scalars);
      consecutive.insert(op.getResult(0));
      return success();
    }
    if (isa<arith::AndIOp>(op) && llvm::all_of(op.getOperands(), [&](Value v) { return isGuard(v); }))
      return both(op);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (compare && compare.getPredicate() == arith::CmpIPredicate::slt && isConsecutive(compare.getLhs()) &&
        !varies(compare.getRhs())) {
      Value first = scalars.lookupOrDefault(compare.getLhs()), bound = scalars.lookupOrDefault(compare.getRhs());
      bool uniform = lieOnOneSide(first, width, bound);
      counts[compare] = uniform ? Value() : arith::SubIOp::create(b, op.getLoc(), bound, first).getResult();
      scalars.map(compare.getResult(), arith::CmpIOp::create(b, op.getLoc(), arith::CmpIPredicate::slt, first, bound)
                                           .getResult());
      return success();
    }
    if (!op.hasTrait<OpTrait::Elementwise>() || op.getNumResults() != 1 || op.getResult(0).getType().isIndex() ||
        llvm::any_of(op.getOperands(), [&](Value v) { return isConsecutive(v); }))
      return loop.emitError("vectorize: '") << op.getName() << "' on the lanes of loop '" << loop.getName()
                                            << "' has no vector form";
    IRMapping mapping;
    for (Value operand : op.getOperands())
      mapping.map(operand, asVector(operand));
    if (auto select = dyn_cast<arith::SelectOp>(op); select && !varies(select.getCondition()))
      mapping.map(select.getCondition(), scalars.lookupOrDefault(select.getCondition()));
    Operation *clone = b.clone(op, mapping);
    clone->getResult(0).setType(VectorType::get({width}, op.getResult(0).getType()));
    vectors[op.getResult(0)] = clone->getResult(0);
    return success();
  }

  /// Conditions whose active lanes are counted, or that hold for all lanes or none.
  bool isGuard(Value condition) const {
    return condition.getType().isInteger(1) && (counts.contains(condition) || !varies(condition));
  }

  /// Two guards at once.
  LogicalResult both(Operation &op) {
    Value lhs = counts.lookup(op.getOperand(0)), rhs = counts.lookup(op.getOperand(1));
    counts[op.getResult(0)] = fewer(lhs, rhs);
    b.clone(op, scalars);
    return success();
  }

  /// The lanes that two guards leave; null stands for all.
  Value fewer(Value lhs, Value rhs) {
    return lhs && rhs ? arith::MinSIOp::create(b, loop.getLoc(), lhs, rhs).getResult() : lhs ? lhs : rhs;
  }

  /// A tile that has an element for each lane, and no other.
  bool hasLanes(Value tensor, unsigned axis) {
    auto tile = tensor.getDefiningOp<WorkspaceOp>();
    return tile && getConstantIntValue(tile.getSizes()[axis]) == width;
  }

  /// A workspace in panels along an axis has room for whole vectors from `first` on, which lies below `size`'s strips.
  bool isPadded(Value tensor, unsigned axis, Value first) {
    auto workspace = tensor.getDefiningOp<WorkspaceOp>();
    if (!workspace)
      return false;
    FormatAttr layout = formatOf(workspace.getResult());
    ArrayRef<Digit> last = layout.getLevels().back().getDigits();
    return last.size() == 1 && last[0].axis == axis && last[0].mod != 0 && last[0].mod % width == 0 &&
           knownMultiple(first) % width == 0 && bound && lieInPanels(first, width, bound, last[0].mod);
  }

  LogicalResult access(Operation &op, ValueRange indices, Value result, Value count) {
    std::optional<int64_t> along;
    for (auto [axis, index] : llvm::enumerate(indices)) {
      if (!varies(index))
        continue;
      if (along || !isConsecutive(index))
        return loop.emitError("vectorize: loop '") << loop.getName() << "' is not consecutive in an access";
      along = axis;
    }
    auto write = dyn_cast<WriteOp>(op);
    if (!along && (!write || !varies(write.getValue()))) {
      b.clone(op, scalars);
      return success();
    }
    if (!along)
      return loop.emitError("vectorize: all lanes of loop '") << loop.getName() << "' write one element";
    SmallVector<Value> places;
    for (Value index : indices)
      places.push_back(scalars.lookupOrDefault(index));
    IntegerAttr axis = b.getI64IntegerAttr(*along);
    if (hasLanes(op.getOperand(write ? 1 : 0), *along))
      count = {};
    if (write) {
      auto made =
          WriteOp::create(b, op.getLoc(), asVector(write.getValue()), write.getTensor(), places, count, axis);
      made->setDiscardableAttrs(write->getDiscardableAttrDictionary()); // atomic
      return success();
    }
    auto type = VectorType::get({width}, result.getType());
    Value tensor = scalars.lookupOrDefault(cast<ReadOp>(op).getTensor());
    Value active = isPadded(tensor, *along, places[*along]) ? Value() : count;
    auto made = ReadOp::create(b, op.getLoc(), type, tensor, places, active, axis);
    made->setDiscardableAttrs(op.getDiscardableAttrDictionary()); // staged
    vectors[result] = made;
    return success();
  }

  /// Neighbours of a stored block lie at consecutive positions.
  LogicalResult position(Operation &op, Value count) {
    auto apart = [&] {
      return loop.emitError("vectorize: loop '") << loop.getName() << "' does not run along neighbours of a stored block";
    };
    if (auto locate = dyn_cast<LocateOp>(op)) {
      ValueRange digits = locate.getDigits();
      bool neighbours = !digits.empty() && isConsecutive(digits.back()) && !varies(locate.getParent()) &&
                        llvm::none_of(digits.drop_back(), [&](Value v) { return varies(v); });
      if (!neighbours)
        return apart();
      b.clone(op, scalars);
      consecutive.insert(locate.getResult());
      return success();
    }
    auto set = dyn_cast<SetOp>(op);
    Value place = set ? set.getPosition() : op.getOperand(1);
    if (!isConsecutive(place))
      return apart();
    Value first = scalars.lookupOrDefault(place);
    if (set) {
      SetOp::create(b, op.getLoc(), asVector(set.getValue()), set.getTensor(), first, count);
      return success();
    }
    auto type = VectorType::get({width}, op.getResult(0).getType());
    vectors[op.getResult(0)] = count ? storedLanes(op, first, count) : stored(b, op, first, type);
    return success();
  }

  /// What is stored at a position, or from there on where `type` is a vector.
  Value stored(OpBuilder &at, Operation &op, Value position, Type type) {
    OperationState state(op.getLoc(), op.getName(), {scalars.lookupOrDefault(op.getOperand(0)), position}, {type});
    return at.create(state)->getResult(0);
  }

  /// The first `count` of neighbours, and zeros: the array may end behind them.
  Value storedLanes(Operation &op, Value first, Value count) {
    Location loc = op.getLoc();
    Type element = op.getResult(0).getType();
    auto type = VectorType::get({width}, element);
    auto chosen = [&](OpBuilder &at, arith::CmpIPredicate predicate, int64_t lanes, Type result) {
      Value limit = arith::ConstantIndexOp::create(at, loc, lanes);
      Value condition = arith::CmpIOp::create(at, loc, predicate, count, limit);
      return scf::IfOp::create(at, loc, result, condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
    };
    scf::IfOp whole = chosen(b, arith::CmpIPredicate::sge, width, type);
    OpBuilder then = OpBuilder::atBlockEnd(whole.thenBlock()), part = OpBuilder::atBlockEnd(whole.elseBlock());
    scf::YieldOp::create(then, loc, stored(then, op, first, type));
    SmallVector<Value> lanes;
    for (int64_t lane = 0; lane < width; ++lane) {
      scf::IfOp one = chosen(part, arith::CmpIPredicate::sgt, lane, element);
      OpBuilder inside = OpBuilder::atBlockEnd(one.thenBlock()), outside = OpBuilder::atBlockEnd(one.elseBlock());
      Value place = arith::AddIOp::create(inside, loc, first, arith::ConstantIndexOp::create(inside, loc, lane));
      scf::YieldOp::create(inside, loc, stored(inside, op, place, element));
      Value zero = arith::ConstantOp::create(outside, loc, outside.getZeroAttr(element));
      scf::YieldOp::create(outside, loc, zero);
      lanes.push_back(one.getResult(0));
    }
    scf::YieldOp::create(part, loc, vector::FromElementsOp::create(part, loc, type, lanes).getResult());
    return whole.getResult(0);
  }

  /// A loop inside: the carried floating-point values become vectors.
  LogicalResult carry(Operation &op, Block *body, Value bound, unsigned leading, Value count) {
    if (varies(bound))
      return loop.emitError("vectorize: the bounds of a loop inside depend on the lanes of '") << loop.getName() << "'";
    OperationState state(op.getLoc(), op.getName());
    unsigned fixed = op.getNumOperands() - op.getNumResults();
    for (Value operand : op.getOperands().take_front(fixed))
      state.operands.push_back(scalars.lookupOrDefault(operand));
    for (Value init : op.getOperands().drop_front(fixed)) {
      state.operands.push_back(asVector(init));
      state.types.push_back(state.operands.back().getType());
    }
    state.attributes = op.getAttrs();
    auto *fresh = new Block;
    state.addRegion()->push_back(fresh);
    Operation *made = b.create(state);
    for (auto [number, argument] : llvm::enumerate(body->getArguments())) {
      Type type = number < leading ? argument.getType() : state.types[number - leading];
      Value replacement = fresh->addArgument(type, argument.getLoc());
      if (number < leading)
        scalars.map(argument, replacement);
      else
        vectors[argument] = replacement;
    }
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(fresh);
    if (failed(block(*body, count)))
      return failure();
    auto yielded = llvm::map_to_vector(body->getTerminator()->getOperands(), [&](Value v) { return asVector(v); });
    YieldOp::create(b, op.getLoc(), yielded);
    for (auto [before, after] : llvm::zip(op.getResults(), made->getResults()))
      vectors[before] = after;
    return success();
  }

  /// Lanes past the end do nothing: their accesses are counted out, and their values are those of the other side.
  LogicalResult divide(scf::IfOp guard, Value lanes, Value count) {
    auto compare = guard.getCondition().getDefiningOp<arith::CmpIOp>();
    Value size = compare ? scalars.lookupOrDefault(compare.getRhs()) : Value(), around = std::exchange(bound, size);
    LogicalResult then = block(*guard.thenBlock(), fewer(count, lanes));
    bound = around;
    if (failed(then))
      return failure();
    if (guard.getNumResults() == 0)
      return success();
    if (failed(block(*guard.elseBlock(), count)))
      return failure();
    Value active = LanesOp::create(b, guard.getLoc(), VectorType::get({width}, b.getI1Type()), lanes);
    auto yes = guard.thenBlock()->getTerminator()->getOperands(), no = guard.elseBlock()->getTerminator()->getOperands();
    for (auto [result, then, otherwise] : llvm::zip(guard.getResults(), yes, no))
      vectors[result] = arith::SelectOp::create(b, guard.getLoc(), active, asVector(then), asVector(otherwise));
    return success();
  }

  LogicalResult branch(scf::IfOp guard, Value count) {
    auto lanes = counts.find(guard.getCondition());
    if (lanes != counts.end() && lanes->second)
      return divide(guard, lanes->second, count);
    SmallVector<Type> types;
    for (Type type : guard.getResultTypes())
      types.push_back(VectorType::get({width}, type));
    auto made = scf::IfOp::create(b, guard.getLoc(), types, scalars.lookupOrDefault(guard.getCondition()),
                                  /*addThenBlock=*/true, /*addElseBlock=*/guard.elseBlock() != nullptr);
    for (Region *region : {&guard.getThenRegion(), &guard.getElseRegion()}) {
      if (region->empty())
        continue;
      OpBuilder::InsertionGuard restore(b);
      b.setInsertionPointToEnd(&made->getRegion(region->getRegionNumber()).front());
      if (failed(block(region->front(), count)))
        return failure();
      auto yielded = llvm::map_to_vector(region->front().getTerminator()->getOperands(),
                                         [&](Value v) { return asVector(v); });
      scf::YieldOp::create(b, guard.getLoc(), yielded);
    }
    for (auto [before, after] : llvm::zip(guard.getResults(), made.getResults()))
      vectors[before] = after;
    return success();
  }

  LoopOp loop;
  int64_t width;
  OpBuilder b;
  IRMapping scalars;                 // uniform values, and lane 0 of consecutive ones
  DenseMap<Value, Value> vectors;    // values with lanes
  DenseSet<Value> consecutive;       // lane n is lane 0 plus n
  DenseMap<Value, Value> counts;     // comparison -> active lanes, null where all or none are
  Value bound;                       // of the guard around, where it divides the lanes
};

struct VectorizeLoops : lacis::impl::LacisVectorizeLoopsBase<VectorizeLoops> {
  void runOnOperation() override {
    SmallVector<LoopOp> marked;
    getOperation().walk([&](LoopOp loop) {
      if (loop.getVectorize())
        marked.push_back(loop);
    });
    for (LoopOp loop : marked) {
      auto around = loop ? dyn_cast<LoopOp>(loop->getParentOp()) : LoopOp();
      bool isTile = around && around.getVectorize();
      if (isTile) // it comes later in the list, and is done with this one
        llvm::replace(marked, around, LoopOp());
      if (loop && !isTile)
        widenTiles(loop, *loop.getVectorize());
      if (loop && failed(isTile ? transposeTile(around, loop) : Vectorizer(loop).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
