// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops of a tile are distributed over the statements of a product: what its sum begins with, a round of it, and what
/// follows it. This is loop distribution, with scalar expansion of the sum.
#include "DistributeTiles.h"

#include "TileBody.h"
#include "TileNest.h"
#include "TileVariance.h"
#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/Reduction.h"
#include "lacis/Dialect/Lacis/IR/Workspace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <numeric>

using namespace mlir;
using namespace lacis;

namespace {

class DistributeTiles : TileBody {
public:
  explicit DistributeTiles(TileBody body) : TileBody(std::move(body)), loc(outer.getLoc()) {}
  FailureOr<LoopOpInterface> run();

private:
  /// The loops of one statement, in which numbers of the nest are made again.
  struct Statement {
    OpBuilder b;
    SmallVector<LoopOp> loops;
    SmallVector<Value> places;
    IRMapping numbers;
    bool isBehind = false;   // the rounds
    int64_t firstColumn = 0; // of a part of the tile's columns
  };

  void hoist();
  void guard(Statement &statement, ArrayRef<Value> conditions);
  Statement open(OpBuilder &b, StringRef phase, int64_t first = 0, int64_t columns = 0);
  void close(Statement &statement);
  Value again(Statement &in, Value value);
  Value readInside(Statement &in, ReadOp read);
  Value digitOf(Statement &in, Operation *op);
  Value addUp(OpBuilder &b, Value lhs, Value rhs);
  void writeSum(Statement &in, Value value);
  Value readSum(Statement &in);
  void forEachPart(OpBuilder &b, llvm::function_ref<void()> statement);
  void begin(OpBuilder &b);
  LoopOpInterface openRounds(OpBuilder &b, Operation *loop);
  LoopOpInterface makeRounds(OpBuilder b);
  void shareNumbers(OpBuilder &b);
  void addRound(OpBuilder &b);
  int64_t widthOf(const Store &store);
  void finish(OpBuilder &b);
  void finishWith(OpBuilder &b, const Store &store);
  void finishColumns(OpBuilder b, const Store &store, int64_t first, int64_t columns);

  Location loc;
  IRMapping numbers;               // of rounds
  SmallVector<Value> sums;         // of all places of the tile, one for each part
  int64_t part = 0;                // of the present statement
};

} // namespace

/// What is the same for all of the tile is computed before it, numbers that it reads of operands among that.
void DistributeTiles::hoist() {
  auto isNumber = [](Operation *op) {
    auto read = dyn_cast<ReadOp>(op);
    return isMemoryEffectFree(op) || (read && isa<BlockArgument>(read.getTensor())); // operands alone are the same for a tile
  };
  for (Operation &op : llvm::make_early_inc_range(block->without_terminator()))
    if (isNumber(&op) && op.getNumRegions() == 0 &&
        llvm::none_of(op.getOperands(), [&](Value operand) { return isOfTile(operand); }))
      op.moveBefore(outer);
}

/// What is made of the statement from here on is behind the conditions.
void DistributeTiles::guard(Statement &statement, ArrayRef<Value> conditions) {
  for (Value condition : conditions) {
    Value own = again(statement, condition);
    statement.b = scf::IfOp::create(statement.b, loc, own, /*withElseRegion=*/false).getThenBodyBuilder();
  }
}

//===- Statements ---------------------------------------------------------===//

/// Of all columns, or of so many of them.
DistributeTiles::Statement DistributeTiles::open(OpBuilder &b, StringRef phase, int64_t first, int64_t columns) {
  Statement made{b, {}, {}, numbers};
  made.firstColumn = first;
  PathAttr path = pathOf(b.getContext(), PathKind::Phase, phase);
  for (LoopOp loop : tile) {
    LoopName name(loop.getLetters(), join(path, loop.getPathAttr()));
    bool isPart = columns && loop == tile[1];
    Value upper = arith::ConstantIndexOp::create(made.b, loc, isPart ? columns : *loop.getTrip());
    auto own = LoopOp::create(made.b, loc, name, upper);
    made.loops.push_back(own);
    made.b = OpBuilder::atBlockEnd(own.getBlock());
    Value place = own.getCoordinate();
    if (isPart && first > 0)
      place = arith::AddIOp::create(made.b, loc, arith::ConstantIndexOp::create(made.b, loc, first), place);
    made.places.push_back(place);
    made.numbers.map(loop.getCoordinate(), place);
  }
  return made;
}

void DistributeTiles::close(Statement &statement) {
  for (LoopOp loop : statement.loops) {
    OpBuilder end = OpBuilder::atBlockEnd(loop.getBlock());
    YieldOp::create(end, loc);
  }
}

Value DistributeTiles::again(Statement &in, Value value) {
  if (Value known = in.numbers.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !outer->isProperAncestor(op))
    return value;
  if (Value digit = digitOf(in, op)) {
    in.numbers.map(value, digit);
    return digit;
  }
  for (Value taken : takenBy(op))
    in.numbers.map(taken, again(in, taken));
  auto read = dyn_cast<ReadOp>(op);
  bool isElement = read && in.isBehind && read.getIndices().size() > 1;
  bool isIndex = isa<arith::AddIOp>(op) && value.getType().isIndex();
  if (isElement)
    in.numbers.map(value, readInside(in, read));
  else if (isIndex)
    in.numbers.map(value, addUp(in.b, in.numbers.lookup(op->getOperand(0)), in.numbers.lookup(op->getOperand(1))));
  else
    in.b.clone(*op, in.numbers); // which maps all its results
  return in.numbers.lookup(value);
}

/// Digits of a column are known in a part of the columns: the quotient, and what the rest begins with.
Value DistributeTiles::digitOf(Statement &in, Operation *op) {
  APInt size;
  Value column = tile[1].getCoordinate(), place = in.places.empty() ? Value() : in.places.back();
  bool isDigit = place && isa<arith::DivUIOp, arith::RemUIOp>(op) && op->getOperand(0) == column;
  if (!isDigit || !matchPattern(op->getOperand(1), m_ConstantInt(&size)))
    return {};
  int64_t divisor = size.getSExtValue();
  auto loop = in.loops.back();
  if (in.firstColumn % divisor + *loop.getTrip() > divisor)
    return {};
  auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(in.b, loc, value).getResult(); };
  if (isa<arith::DivUIOp>(op))
    return constant(in.firstColumn / divisor);
  int64_t begin = in.firstColumn % divisor;
  return begin == 0 ? loop.getCoordinate()
                    : arith::AddIOp::create(in.b, loc, constant(begin), loop.getCoordinate()).getResult();
}

/// A tile has elements behind the ends of the axes, which nobody stores: the last of an axis is read for them.
Value DistributeTiles::readInside(Statement &in, ReadOp read) {
  SmallVector<Value> indices;
  for (auto [axis, index] : llvm::enumerate(read.getIndices())) {
    Value size = tensor::DimOp::create(in.b, loc, read.getTensor(), axis);
    Value last = arith::SubIOp::create(in.b, loc, size, arith::ConstantIndexOp::create(in.b, loc, 1));
    indices.push_back(arith::MinUIOp::create(in.b, loc, in.numbers.lookup(index), last));
  }
  return ReadOp::create(in.b, read.getLoc(), read.getType(), read.getTensor(), indices, Value(), IntegerAttr());
}

/// The coordinate of a place is added last: before it stands where the tile begins.
Value DistributeTiles::addUp(OpBuilder &b, Value lhs, Value rhs) {
  auto inner = rhs.getDefiningOp<arith::AddIOp>();
  bool isBehind = inner && isa<BlockArgument>(inner.getRhs()) && !isa<BlockArgument>(inner.getLhs());
  if (!isBehind)
    return arith::AddIOp::create(b, loc, lhs, rhs);
  Value first = arith::AddIOp::create(b, loc, lhs, inner.getLhs());
  return arith::AddIOp::create(b, loc, first, inner.getRhs());
}

void DistributeTiles::writeSum(Statement &in, Value value) {
  WriteOp::create(in.b, loc, value, sums[part], in.places, Value(), IntegerAttr());
}

Value DistributeTiles::readSum(Statement &in) {
  return ReadOp::create(in.b, loc, sum->getResult(0).getType(), sums[part], in.places, Value(), IntegerAttr());
}

/// Makes the statement of each part, which a jammed loop has side by side.
void DistributeTiles::forEachPart(OpBuilder &b, llvm::function_ref<void()> statement) {
  int64_t count = parts ? *parts.getTrip() : 1;
  for (part = 0; part < count; ++part) {
    if (parts)
      numbers.map(parts.getCoordinate(), arith::ConstantIndexOp::create(b, loc, part).getResult());
    statement();
  }
}

void DistributeTiles::begin(OpBuilder &b) {
  SmallVector<int64_t> sizes;
  for (LoopOp loop : tile)
    sizes.push_back(*loop.getTrip());
  sums.push_back(makeTile(b, loc, sum->getResult(0).getType(), sizes));
  Statement in = open(b, "begin");
  writeSum(in, again(in, sum->getOperands().back()));
  close(in);
}

/// A loop of the sum that carries nothing: what it adds to is in the tensor.
LoopOpInterface DistributeTiles::openRounds(OpBuilder &b, Operation *loop) {
  Statement around{b, {}, {}, numbers};
  if (auto dense = dyn_cast<LoopOp>(loop)) {
    auto made = LoopOp::create(b, loc, dense.getLoopName(), again(around, dense.getUpper()));
    numbers.map(dense.getCoordinate(), made.getCoordinate());
    return made;
  }
  auto walk = cast<LevelLoopOp>(loop);
  auto made = LevelLoopOp::create(b, loc, walk.getLoopName(), walk.getTensor(), walk.getLevel(),
                                  again(around, walk.getParent()), ValueRange());
  numbers.map(walk.getPosition(), made.getPosition());
  for (auto [before, after] : llvm::zip(walk.getCoordinates(), made.getCoordinates()))
    numbers.map(before, after);
  return made;
}

/// What is the same for all of a tile in a round is computed once for all parts.
void DistributeTiles::shareNumbers(OpBuilder &b) {
  Statement round{b, {}, {}, numbers};
  for (Operation &op : rounds.back()->getRegion(0).front().without_terminator())
    if (isPure(&op) && op.getNumRegions() == 0 && llvm::none_of(op.getOperands(), [&](Value from) { return isOfTile(from); }))
      for (Value result : op.getResults())
        (void)again(round, result);
  numbers = round.numbers;
}

LoopOpInterface DistributeTiles::makeRounds(OpBuilder b) {
  SmallVector<LoopOpInterface> made;
  for (Operation *loop : rounds) {
    made.push_back(openRounds(b, loop));
    b = OpBuilder::atBlockEnd(&made.back()->getRegion(0).front());
  }
  made.front().setPipeline(cast<LoopOpInterface>(rounds.front()).getPipeline());
  shareNumbers(b);
  forEachPart(b, [&] { addRound(b); });
  for (LoopOpInterface loop : made) {
    OpBuilder end = OpBuilder::atBlockEnd(&loop->getRegion(0).front());
    YieldOp::create(end, loc);
  }
  return made.front();
}

void DistributeTiles::addRound(OpBuilder &b) {
  Statement in = open(b, "round");
  if (!depth) {
    Value added = again(in, combinationOf(rounds.back())->added);
    writeSum(in, arith::AddFOp::create(in.b, loc, readSum(in), added));
    return close(in);
  }
  Statement whole = in;
  guard(in, partConditions);
  Value upper = arith::ConstantIndexOp::create(in.b, loc, *depth.getTrip());
  Value carried = readSum(in);
  auto own = LoopOp::create(in.b, loc, depth.getLoopName(), upper, carried, Reduction::Add);
  own.setTf32(depth.getTf32());
  Statement inner{OpBuilder::atBlockEnd(own.getBlock()), {}, {}, in.numbers};
  inner.numbers.map(depth.getCoordinate(), own.getCoordinate());
  Value added = again(inner, combinationOf(depth)->added);
  YieldOp::create(inner.b, loc, arith::AddFOp::create(inner.b, loc, own.getIterArgs()[0], added).getResult());
  writeSum(in, own.getResult(0));
  close(whole);
}

/// A block has all its entries, or 0 where an axis has ended, of which the sum is 0.
static Value withoutEntry(Value value) {
  auto entry = value.getDefiningOp<arith::SelectOp>();
  return entry && entry.getCondition().getDefiningOp<EntryOp>() ? entry.getTrueValue() : value;
}

/// So many neighbouring columns as digits in the numbers of the store are the same for.
int64_t DistributeTiles::widthOf(const Store &store) {
  int64_t width = 0;
  auto note = [&](Value from) {
    auto quotient = from.getDefiningOp<arith::DivUIOp>();
    if (quotient && quotient.getLhs() == tile[1].getCoordinate())
      width = std::gcd(width, neighboursOf(from, tile[1].getCoordinate()));
    return false;
  };
  SmallVector<Value> numbers(store.op->getOperands());
  llvm::append_range(numbers, store.conditions);
  llvm::append_range(numbers, partConditions);
  llvm::for_each(numbers, [&](Value number) { (void)followsFrom(number, note); });
  return width > 0 ? width : *tile[1].getTrip();
}

/// Conditions that all of a part has stand around the statement, others in it.
void DistributeTiles::finishColumns(OpBuilder b, const Store &store, int64_t first, int64_t columns) {
  SmallVector<Value> all(partConditions), around, inside;
  llvm::append_range(all, store.conditions);
  for (Value condition : all) {
    (followsFrom(condition, tile[0].getCoordinate()) ? inside : around).push_back(condition);
  }
  Statement outside{b, {}, {}, numbers};
  outside.numbers.map(tile[1].getCoordinate(), arith::ConstantIndexOp::create(b, loc, first).getResult());
  guard(outside, around);
  Statement in = open(outside.b, "end", first, columns);
  in.isBehind = true;
  Statement whole = in;
  in.numbers.map(sum->getResult(0), readSum(in));
  guard(in, inside);
  if (auto set = dyn_cast<SetOp>(store.op)) {
    Value value = again(in, withoutEntry(set.getValue()));
    Value copy = set.getBatch() ? again(in, set.getBatch()) : Value();
    SetOp::create(in.b, set.getLoc(), value, set.getTensor(), again(in, set.getPosition()), copy, Value());
  } else {
    auto write = cast<WriteOp>(store.op);
    SmallVector<Value> at;
    Value value = again(in, write.getValue());
    for (Value index : write.getIndices())
      at.push_back(again(in, index));
    WriteOp::create(in.b, write.getLoc(), value, write.getTensor(), at, Value(), IntegerAttr());
  }
  close(whole);
}

/// Part by part of the columns.
void DistributeTiles::finishWith(OpBuilder &b, const Store &store) {
  int64_t columns = widthOf(store);
  for (int64_t first = 0; first < *tile[1].getTrip(); first += columns)
    finishColumns(b, store, first, columns);
}

void DistributeTiles::finish(OpBuilder &b) {
  if (!choice)
    return forEachPart(b, [&] { finishWith(b, store); });
  Statement around{b, {}, {}, numbers};
  auto made = scf::IfOp::create(b, loc, again(around, choice.getCondition()), /*withElseRegion=*/true);
  OpBuilder then = made.getThenBodyBuilder(), other = made.getElseBodyBuilder();
  forEachPart(then, [&] { finishWith(then, store); });
  forEachPart(other, [&] { finishWith(other, otherwise); });
}

FailureOr<LoopOpInterface> DistributeTiles::run() {
  hoist();
  OpBuilder b(outer);
  Statement all{b, {}, {}, numbers};
  guard(all, conditions);
  b = all.b;
  forEachPart(b, [&] { begin(b); });
  LoopOpInterface round = makeRounds(b);
  finish(b);
  if (failed(eraseReplaced(outer, depth ? depth : sum)))
    return failure();
  return round;
}

FailureOr<LoopOpInterface> lacis::distributeTiles(Operation *nest) {
  FailureOr<TileBody> body = TileBody::read(nest);
  return failed(body) ? FailureOr<LoopOpInterface>() : DistributeTiles(*body).run();
}
