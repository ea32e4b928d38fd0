// SPDX-License-Identifier: Apache-2.0
/// \file
/// The loops of a tile are distributed over the statements of a product: what its sum begins with, a round of it, and what
/// follows it. This is loop distribution, with scalar expansion of the sum.
#include "DistributeTiles.h"

#include "lacis/Dialect/Lacis/IR/Follows.h"
#include "lacis/Dialect/Lacis/IR/NestFacts.h"
#include "lacis/Dialect/Lacis/IR/Reduction.h"
#include "lacis/Dialect/Lacis/IR/Workspace.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

namespace {

class DistributeTiles {
public:
  DistributeTiles(LoopOp rows, LoopOp columns)
      : outer(rows->isAncestor(columns) ? rows : columns), tile{rows, columns}, loc(outer.getLoc()) {
    if (auto around = dyn_cast<LoopOp>(outer->getParentOp()); around && around.getJam() && around.getTrip())
      parts = outer = around;
  }
  FailureOr<LoopOpInterface> run();

private:
  /// The loops of one statement, in which numbers of the nest are made again.
  struct Statement {
    OpBuilder b;
    SmallVector<LoopOp> loops;
    SmallVector<Value> places;
    IRMapping numbers;
    bool isBehind = false; // the rounds
  };

  bool isOfTile(Value value);
  bool isStore(Operation *op);
  LogicalResult openGuards();
  LogicalResult findSum();
  void hoist();
  void guardStatements(OpBuilder &b);
  Statement open(OpBuilder &b, StringRef phase);
  void close(Statement &statement);
  Value again(Statement &in, Value value);
  Value readInside(Statement &in, ReadOp read);
  Value addUp(OpBuilder &b, Value lhs, Value rhs);
  void writeSum(Statement &in, Value value);
  Value readSum(Statement &in);
  void forEachPart(OpBuilder &b, llvm::function_ref<void()> statement);
  void begin(OpBuilder &b);
  LoopOpInterface openRounds(OpBuilder &b, Operation *loop);
  LoopOpInterface makeRounds(OpBuilder b);
  void shareNumbers(OpBuilder &b);
  void addRound(OpBuilder &b);
  void finish(OpBuilder &b);
  void finishWith(OpBuilder &b, Operation *store);

  LoopOp outer;
  LoopOp parts; // jammed: each has a sum of its own; or null
  SmallVector<LoopOp> tile; // rows first
  Location loc;
  Block *body = nullptr;           // of the innermost loop of the tile
  SmallVector<Value> conditions;   // that are the same for all of the tile
  Operation *sum = nullptr;
  SmallVector<Operation *> rounds; // of the sum, outermost first: positions, tiles of a block
  LoopOp depth;                    // of the sum, in a tile; null where no product is summed up
  Operation *store = nullptr;      // `write`, or `set` where the output is stored; or a choice of two
  IRMapping numbers;               // of rounds
  SmallVector<Value> sums;         // of all places of the tile, one for each part
  int64_t part = 0;                // of the present statement
};

} // namespace

bool DistributeTiles::isOfTile(Value value) {
  return followsFrom(value, [&](Value from) {
    auto isOf = [&](LoopOp loop) { return loop.getCoordinate() == from; };
    return (sum && from.getDefiningOp() == sum) || (parts && isOf(parts)) || llvm::any_of(tile, isOf);
  });
}

/// A condition on the places of a tile says where an axis ends: boxes have 0 behind it, and stores leave that out. Others are
/// the same for all of the tile.
LogicalResult DistributeTiles::openGuards() {
  LoopOp inner = tile[0]->isAncestor(tile[1]) ? tile[1] : tile[0];
  for (Operation *op = inner; op != outer; op = op->getParentOp()) {
    auto guard = dyn_cast<scf::IfOp>(op);
    bool isTile = llvm::is_contained(tile, dyn_cast<LoopOp>(op));
    if (guard ? guard.getNumResults() != 0 || guard.elseBlock() : !isTile)
      return op->emitError("tiles: this stands between the loops of a tile, which are one product");
    if (guard && !isOfTile(guard.getCondition()))
      conditions.push_back(guard.getCondition());
  }
  body = inner.getBlock();
  while (auto guard = dyn_cast_or_null<scf::IfOp>(body->getTerminator()->getPrevNode())) {
    if (guard.getNumResults() != 0 || guard.elseBlock())
      break;
    if (!isOfTile(guard.getCondition()))
      conditions.push_back(guard.getCondition());
    Block *inside = guard.thenBlock();
    inside->getTerminator()->erase();
    body->getOperations().splice(guard->getIterator(), inside->getOperations());
    guard.erase();
  }
  return success();
}

/// The one store of a branch, or null.
static Operation *storeIn(Block *branch) {
  Operation *found = nullptr;
  for (Operation &op : branch->without_terminator()) {
    bool isStore = isa<WriteOp, SetOp>(op);
    if ((isStore && found) || (!isStore && !isa<ReadOp>(op) && !isMemoryEffectFree(&op)))
      return nullptr;
    found = isStore ? &op : found;
  }
  return found;
}

/// Is it a store, or, where a condition holds for all of the tile, one of two?
bool DistributeTiles::isStore(Operation *op) {
  auto choice = dyn_cast<scf::IfOp>(op);
  if (!choice || choice.getNumResults() != 0 || !choice.elseBlock())
    return isa<WriteOp, SetOp>(op);
  return !isOfTile(choice.getCondition()) && storeIn(choice.thenBlock()) && storeIn(choice.elseBlock());
}

LogicalResult DistributeTiles::findSum() {
  auto refuse = [](Operation *op) { return op->emitError("tiles: a tile has one sum, and stores what follows from it"); };
  for (Operation &op : body->without_terminator()) {
    auto loop = dyn_cast<LoopOpInterface>(op);
    bool stores = isStore(&op);
    if ((loop && sum) || (stores && store) || (!loop && !stores && !isa<ReadOp>(op) && !isMemoryEffectFree(&op)))
      return refuse(&op);
    sum = loop ? &op : sum;
    store = stores ? &op : store;
  }
  if (!sum || !store || sum->getNumResults() != 1)
    return refuse(outer);
  Operation *loop = sum;
  auto isInTile = [](Operation *op) { return isa<LoopOp>(op) && cast<LoopOp>(op).getTensorize(); };
  while (!isInTile(loop)) {
    rounds.push_back(loop);
    auto inner = loop->getRegion(0).front().getOps<LoopOp>();
    if (inner.empty() && !factorsOf(loop))
      return success();
    if (!llvm::hasSingleElement(inner))
      return loop->emitError("tiles: no loop of the sum is tensorized");
    loop = *inner.begin();
  }
  if (rounds.empty())
    return sum->emitError("tiles: all of the sum is one tile; split its loop");
  depth = cast<LoopOp>(loop);
  return success();
}

/// What is the same for all of the tile is computed before it, numbers that it reads of operands among that.
void DistributeTiles::hoist() {
  auto isNumber = [](Operation *op) {
    auto read = dyn_cast<ReadOp>(op);
    return isMemoryEffectFree(op) || (read && isa<BlockArgument>(read.getTensor())); // operands alone are the same for a tile
  };
  for (Operation &op : llvm::make_early_inc_range(body->without_terminator()))
    if (isNumber(&op) && op.getNumRegions() == 0 &&
        llvm::none_of(op.getOperands(), [&](Value operand) { return isOfTile(operand); }))
      op.moveBefore(outer);
}

void DistributeTiles::guardStatements(OpBuilder &b) {
  for (Value condition : conditions) {
    Statement around{b, {}, {}, numbers};
    b = scf::IfOp::create(b, loc, again(around, condition), /*withElseRegion=*/false).getThenBodyBuilder();
  }
}

//===- Statements ---------------------------------------------------------===//

DistributeTiles::Statement DistributeTiles::open(OpBuilder &b, StringRef phase) {
  Statement made{b, {}, {}, numbers};
  PathAttr path = pathOf(b.getContext(), PathKind::Phase, phase);
  for (LoopOp loop : tile) {
    LoopName name(loop.getLetters(), join(path, loop.getPathAttr()));
    Value upper = arith::ConstantIndexOp::create(made.b, loc, *loop.getTrip());
    made.loops.push_back(LoopOp::create(made.b, loc, name, upper));
    made.places.push_back(made.loops.back().getCoordinate());
    made.numbers.map(loop.getCoordinate(), made.places.back());
    made.b = OpBuilder::atBlockEnd(made.loops.back().getBlock());
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
  for (Value operand : op->getOperands())
    in.numbers.map(operand, again(in, operand));
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
  Value upper = arith::ConstantIndexOp::create(in.b, loc, *depth.getTrip());
  Value carried = readSum(in);
  auto own = LoopOp::create(in.b, loc, depth.getLoopName(), upper, carried, Reduction::Add);
  own.setTf32(depth.getTf32());
  Statement inner{OpBuilder::atBlockEnd(own.getBlock()), {}, {}, in.numbers};
  inner.numbers.map(depth.getCoordinate(), own.getCoordinate());
  Value added = again(inner, combinationOf(depth)->added);
  YieldOp::create(inner.b, loc, arith::AddFOp::create(inner.b, loc, own.getIterArgs()[0], added).getResult());
  writeSum(in, own.getResult(0));
  close(in);
}

/// A block has all its entries, or 0 where an axis has ended, of which the sum is 0.
static Value withoutEntry(Value value) {
  auto entry = value.getDefiningOp<arith::SelectOp>();
  return entry && entry.getCondition().getDefiningOp<EntryOp>() ? entry.getTrueValue() : value;
}

void DistributeTiles::finishWith(OpBuilder &b, Operation *store) {
  Statement in = open(b, "end");
  in.isBehind = true;
  in.numbers.map(sum->getResult(0), readSum(in));
  if (auto set = dyn_cast<SetOp>(store)) {
    Value value = again(in, withoutEntry(set.getValue()));
    Value copy = set.getBatch() ? again(in, set.getBatch()) : Value();
    SetOp::create(in.b, loc, value, set.getTensor(), again(in, set.getPosition()), copy, Value());
  } else {
    auto write = cast<WriteOp>(store);
    SmallVector<Value> at;
    Value value = again(in, write.getValue());
    for (Value index : write.getIndices())
      at.push_back(again(in, index));
    WriteOp::create(in.b, loc, value, write.getTensor(), at, Value(), IntegerAttr());
  }
  close(in);
}

void DistributeTiles::finish(OpBuilder &b) {
  auto choice = dyn_cast<scf::IfOp>(store);
  if (!choice)
    return forEachPart(b, [&] { finishWith(b, store); });
  Statement around{b, {}, {}, numbers};
  auto made = scf::IfOp::create(b, loc, again(around, choice.getCondition()), /*withElseRegion=*/true);
  OpBuilder then = made.getThenBodyBuilder(), otherwise = made.getElseBodyBuilder();
  forEachPart(then, [&] { finishWith(then, storeIn(choice.thenBlock())); });
  forEachPart(otherwise, [&] { finishWith(otherwise, storeIn(choice.elseBlock())); });
}

FailureOr<LoopOpInterface> DistributeTiles::run() {
  if (failed(openGuards()) || failed(findSum()))
    return failure();
  hoist();
  OpBuilder b(outer);
  guardStatements(b);
  forEachPart(b, [&] { begin(b); });
  LoopOpInterface round = makeRounds(b);
  finish(b);
  outer.erase();
  return round;
}

FailureOr<LoopOpInterface> lacis::distributeTiles(Operation *nest) {
  SmallVector<LoopOp> rows, columns;
  nest->walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    if (loop.getTensorize() == TileSide::Rows)
      rows.push_back(loop);
    if (loop.getTensorize() == TileSide::Columns)
      columns.push_back(loop);
  });
  if (rows.size() != 1 || columns.size() != 1)
    return nest->emitError("tiles: a tile has one loop over its rows and one over its columns");
  return DistributeTiles(rows[0], columns[0]).run();
}
