// SPDX-License-Identifier: Apache-2.0
/// \file
/// A loop marked `vectorize` becomes lanes: what depends on its coordinate turns into vectors.
///
/// The loops inside stay as they are, so their bounds must not depend on the lane. A guard of the
/// coordinate becomes the number of active lanes of the accesses under it. A loop that carries a sum
/// carries one sum a lane, through the loops around it that pass the sum on; they are added up at the end. Two marked
/// loops, one in the other, copy a tile to its transpose.
#include "Combiner.h"
#include "TransposeTile.h"
#include "Vectorizer.h"
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

LogicalResult Vectorizer::run() {
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

LogicalResult Vectorizer::sumLanes() {
  std::optional<Reduction> kind = reductionOf(loop);
  SmallVector<LoopOp> chain = carriedChain(loop);
  if (!kind || chain.back() != loop)
    return loop.emitError("vectorize: the rounds of loop '") << loop.getName() << "' are not added up by one operation";
  auto *first = llvm::find_if(llvm::reverse(chain), [](LoopOp other) { return other.getBind().has_value(); }).base();
  LoopOp top = *first;
  b.setInsertionPoint(top);
  auto type = VectorType::get({width}, loop.getResultTypes()[0]);
  Value lanes = arith::ConstantOp::create(b, loop.getLoc(), neutralOf(*kind, type));
  SmallVector<LoopOp> made;
  for (LoopOp outer : llvm::make_range(first, std::prev(chain.end()))) {
    auto copy = LoopOp::create(b, outer.getLoc(), outer.getLoopName(), outer.getUpper(), lanes, kind);
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
  arith::FastMathFlags flags = arith::FastMathFlags::reassoc;
  if (std::optional<Combination> round = combinationOf(loop))
    if (auto known = dyn_cast<arith::ArithFastMathInterface>(round->op))
      flags = flags | known.getFastMathFlagsAttr().getValue();
  Value sum = vector::ReductionOp::create(b, loop.getLoc(), kindOf(*kind), result, top.getInits()[0], flags);
  top.getResult(0).replaceAllUsesWith(sum);
  top.erase();
  return success();
}

LogicalResult Vectorizer::block(Block &source, Value count) {
  for (Operation &op : source.without_terminator())
    if (failed(operation(op, count)))
      return failure();
  return success();
}

Value Vectorizer::asVector(Value value) {
  if (Value vector = vectors.lookup(value))
    return vector;
  if (Value lanes = counts.lookup(value))
    return LanesOp::create(b, loop.getLoc(), VectorType::get({width}, b.getI1Type()), lanes);
  auto type = VectorType::get({width}, value.getType());
  return vector::BroadcastOp::create(b, loop.getLoc(), type, scalars.lookupOrDefault(value));
}

LogicalResult Vectorizer::operation(Operation &op, Value count) {
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

/// A coordinate as a number: that of the first lane, and one more for each after it.
void Vectorizer::number(arith::IndexCastOp op) {
  auto type = VectorType::get({width}, op.getType());
  Value first = arith::IndexCastOp::create(b, op.getLoc(), op.getType(), scalars.lookupOrDefault(op.getIn()));
  SmallVector<Attribute> steps;
  for (int64_t lane = 0; lane < width; ++lane)
    steps.push_back(b.getIntegerAttr(op.getType(), lane));
  Value lanes = arith::ConstantOp::create(b, op.getLoc(), DenseElementsAttr::get(type, steps));
  first = vector::BroadcastOp::create(b, op.getLoc(), type, first);
  vectors[op] = arith::AddIOp::create(b, op.getLoc(), first, lanes);
}

/// Coordinates stay consecutive under addition; a comparison with a bound counts the active lanes.
LogicalResult Vectorizer::arithmetic(Operation &op) {
  if (isa<arith::AddIOp>(op) && isConsecutive(op.getOperand(0)) != isConsecutive(op.getOperand(1)) &&
      op.getResult(0).getType().isIndex()) {
    b.clone(op, scalars);
    consecutive.insert(op.getResult(0));
    return success();
  }
  if (auto cast = dyn_cast<arith::IndexCastOp>(op); cast && isConsecutive(cast.getIn()))
    return number(cast), success();
  if (auto cast = dyn_cast<arith::IndexCastOp>(op); cast && cast.getType().isIndex()) {
    apart[cast] = asVector(cast.getIn());
    return success();
  }
  if (isBand(op))
    return success();
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

bool Vectorizer::hasLanes(Value tensor, unsigned axis) {
  auto tile = tensor.getDefiningOp<WorkspaceOp>();
  return tile && getConstantIntValue(tile.getSizes()[axis]) == width;
}

/// A workspace in panels along an axis has room for whole vectors from `first` on, which lies below `size`'s strips.
bool Vectorizer::isPadded(Value tensor, unsigned axis, Value first) {
  auto workspace = tensor.getDefiningOp<WorkspaceOp>();
  if (!workspace)
    return false;
  FormatAttr layout = formatOf(workspace.getResult());
  ArrayRef<Digit> last = layout.getLevels().back().getDigits();
  return last.size() == 1 && last[0].axis == axis && last[0].mod != 0 && last[0].mod % width == 0 &&
         knownMultiple(first) % width == 0 && bound && lieInPanels(first, width, bound, last[0].mod);
}

/// Lanes past the end read at places of others.
LogicalResult Vectorizer::gather(ReadOp op, Value count) {
  Location loc = op.getLoc();
  auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(b, loc, value).getResult(); };
  auto type = VectorType::get({width}, op.getType());
  Value tensor = scalars.lookupOrDefault(op.getTensor());
  Value last = count ? arith::SubIOp::create(b, loc, count, number(1)).getResult() : Value();
  Value inside = count ? LanesOp::create(b, loc, VectorType::get({width}, b.getI1Type()), count).getResult() : Value();
  for (Value index : count ? op.getIndices() : ValueRange())
    if (Value lanes = apart.lookup(index)) {
      Value first = vector::BroadcastOp::create(b, loc, lanes.getType(), vector::ExtractOp::create(b, loc, lanes, 0));
      apart[index] = arith::SelectOp::create(b, loc, inside, lanes, first);
    }
  Value found = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  for (int64_t lane = 0; lane < width; ++lane) {
    Value own = count ? arith::MinSIOp::create(b, loc, number(lane), last).getResult() : number(lane);
    auto placeOf = [&](Value index) -> Value {
      if (Value lanes = apart.lookup(index))
        return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                          vector::ExtractOp::create(b, loc, lanes, lane));
      Value first = scalars.lookupOrDefault(index);
      return isConsecutive(index) ? arith::AddIOp::create(b, loc, first, own).getResult() : first;
    };
    auto places = llvm::map_to_vector(op.getIndices(), placeOf);
    Value element = ReadOp::create(b, loc, op.getType(), tensor, places, Value(), IntegerAttr());
    found = vector::InsertOp::create(b, loc, element, found, lane);
  }
  vectors[op.getResult()] = found;
  return success();
}

LogicalResult Vectorizer::access(Operation &op, ValueRange indices, Value result, Value count) {
  if (auto read = dyn_cast<ReadOp>(op); read && llvm::any_of(indices, [&](Value at) { return apart.contains(at); }))
    return gather(read, count);
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
  Value tile = op.getOperand(write ? 1 : 0);
  if (hasLanes(tile, *along) && (!write || tiles.has(tile.getDefiningOp<WorkspaceOp>(), *along)))
    count = {};
  if (write) {
    auto made =
        WriteOp::create(b, op.getLoc(), asVector(write.getValue()), write.getTensor(), places, count, axis);
    made.setAtomicAttr(write.getAtomicAttr());
    return success();
  }
  auto type = VectorType::get({width}, result.getType());
  auto read = cast<ReadOp>(op);
  Value tensor = scalars.lookupOrDefault(read.getTensor());
  Value active = isPadded(tensor, *along, places[*along]) ? Value() : count;
  auto made = ReadOp::create(b, op.getLoc(), type, tensor, places, active, axis);
  made.setStagedAttr(read.getStagedAttr());
  made.setHeldAttr(read.getHeldAttr());
  vectors[result] = made;
  return success();
}

/// Neighbours of a stored block lie at consecutive positions.
LogicalResult Vectorizer::position(Operation &op, Value count) {
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
  auto value = dyn_cast<ValueOp>(op);
  Value copy = set ? set.getBatch() : value ? value.getBatch() : Value();
  if (!isConsecutive(place) || (copy && varies(copy)))
    return apart();
  Value first = scalars.lookupOrDefault(place);
  if (set) {
    copy = copy ? scalars.lookupOrDefault(copy) : copy;
    SetOp::create(b, op.getLoc(), asVector(set.getValue()), set.getTensor(), first, copy, count);
    return success();
  }
  auto type = VectorType::get({width}, op.getResult(0).getType());
  vectors[op.getResult(0)] = count ? storedLanes(op, first, count) : stored(b, op, first, type);
  return success();
}

/// What is stored at a position, or from there on where `type` is a vector.
Value Vectorizer::stored(OpBuilder &at, Operation &op, Value position, Type type) {
  OperationState state(op.getLoc(), op.getName(), {scalars.lookupOrDefault(op.getOperand(0)), position}, {type});
  for (Value copy : op.getOperands().drop_front(2))
    state.addOperands(scalars.lookupOrDefault(copy));
  return at.create(state)->getResult(0);
}

/// The first `count` of neighbours, and zeros: the array may end behind them.
Value Vectorizer::storedLanes(Operation &op, Value first, Value count) {
  auto type = VectorType::get({width}, op.getResult(0).getType());
  return loadFirstLanes(b, op.getLoc(), type, count, [&](OpBuilder &at, int64_t lane, Type wanted) {
    if (isa<VectorType>(wanted))
      return stored(at, op, first, wanted);
    Value number = arith::ConstantIndexOp::create(at, op.getLoc(), lane);
    return stored(at, op, arith::AddIOp::create(at, op.getLoc(), first, number), wanted);
  });
}

/// A loop inside: the carried floating-point values become vectors.
LogicalResult Vectorizer::carry(Operation &op, Block *body, Value bound, unsigned leading, Value count) {
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

namespace {

struct VectorizeLoops : lacis::impl::LacisVectorizeLoopsBase<VectorizeLoops> {
  void runOnOperation() override {
    SmallVector<LoopOp> marked;
    getOperation().walk([&](LoopOp loop) {
      if (loop.getVectorize())
        marked.push_back(loop);
    });
    SmallVector<std::pair<LoopOp, LoopOp>> work; // a loop behind the one around it, where both are a tile
    for (size_t n = 0; n < marked.size(); ++n) {
      LoopOp loop = marked[n];
      auto around = loop ? dyn_cast<LoopOp>(loop->getParentOp()) : LoopOp();
      if (around && !around.getVectorize())
        around = {};
      if (around) // it comes later in the list, and is done with this one
        llvm::replace(marked, around, LoopOp());
      if (loop)
        work.push_back({around, loop});
    }
    for (auto [around, loop] : work)
      if (!around)
        widenTiles(loop, *loop.getVectorize());
    LaneTiles tiles(getOperation());
    for (auto [around, loop] : work)
      if (failed(around ? transposeTile(around, loop) : Vectorizer(loop, tiles).run()))
        return signalPassFailure();
  }
};

} // namespace
