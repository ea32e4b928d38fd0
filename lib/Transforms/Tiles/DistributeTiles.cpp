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
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lacis;

namespace {

class DistributeTiles {
public:
  DistributeTiles(LoopOp rows, LoopOp columns)
      : outer(rows->isAncestor(columns) ? rows : columns), tile{rows, columns}, loc(outer.getLoc()) {}
  FailureOr<LoopOpInterface> run();

private:
  /// The loops of one statement, in which numbers of the nest are made again.
  struct Statement {
    OpBuilder b;
    SmallVector<LoopOp> loops;
    SmallVector<Value> places;
    IRMapping numbers;
  };

  bool isOfTile(Value value);
  LogicalResult openGuards();
  LogicalResult findSum();
  void hoist();
  void guardStatements(OpBuilder &b);
  Statement open(OpBuilder &b, StringRef phase);
  void close(Statement &statement);
  Value again(Statement &in, Value value);
  Value addUp(OpBuilder &b, Value lhs, Value rhs);
  void writeSum(Statement &in, Value value);
  Value readSum(Statement &in);
  void begin(OpBuilder &b);
  LoopOpInterface openRounds(OpBuilder &b, Operation *loop);
  LoopOpInterface makeRounds(OpBuilder b);
  void finish(OpBuilder &b);

  LoopOp outer;
  SmallVector<LoopOp> tile; // rows first
  Location loc;
  Block *body = nullptr;           // of the innermost loop of the tile
  SmallVector<Value> conditions;   // that are the same for all of the tile
  Operation *sum = nullptr;
  SmallVector<Operation *> rounds; // of the sum, outermost first: positions, tiles of a block
  LoopOp depth;                    // of the sum, in a tile
  Operation *store = nullptr;      // `write`, or `set` where the output is stored
  IRMapping numbers;               // of rounds
  Value sums;                      // of all places of the tile
};

} // namespace

bool DistributeTiles::isOfTile(Value value) {
  return followsFrom(value, [&](Value from) {
    return (sum && from.getDefiningOp() == sum) || llvm::any_of(tile, [&](LoopOp loop) { return loop.getCoordinate() == from; });
  });
}

/// A condition on the places of a tile says where an axis ends: boxes have 0 behind it, and stores leave that out. Others are
/// the same for all of the tile.
LogicalResult DistributeTiles::openGuards() {
  LoopOp inner = outer == tile[0] ? tile[1] : tile[0];
  for (Operation *op = inner; op != outer; op = op->getParentOp()) {
    auto guard = dyn_cast<scf::IfOp>(op);
    if ((guard && (guard.getNumResults() != 0 || guard.elseBlock())) || (!guard && op != inner))
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

LogicalResult DistributeTiles::findSum() {
  auto refuse = [](Operation *op) { return op->emitError("tiles: a tile has one sum, and stores what follows from it"); };
  for (Operation &op : body->without_terminator()) {
    auto loop = dyn_cast<LoopOpInterface>(op);
    bool isStore = isa<WriteOp, SetOp>(op);
    if ((loop && sum) || (isStore && store) || (!loop && !isStore && !isa<ReadOp>(op) && !isMemoryEffectFree(&op)))
      return refuse(&op);
    sum = loop ? &op : sum;
    store = isStore ? &op : store;
  }
  if (!sum || !store || sum->getNumResults() != 1)
    return refuse(outer);
  Operation *loop = sum;
  auto isInTile = [](Operation *op) { return isa<LoopOp>(op) && cast<LoopOp>(op).getTensorize(); };
  while (!isInTile(loop)) {
    rounds.push_back(loop);
    auto inner = loop->getRegion(0).front().getOps<LoopOp>();
    if (!llvm::hasSingleElement(inner))
      return loop->emitError("tiles: no loop of the sum is tensorized");
    loop = *inner.begin();
  }
  if (rounds.empty())
    return sum->emitError("tiles: all of the sum is one tile; split its loop");
  depth = cast<LoopOp>(loop);
  return success();
}

/// What is the same for all of the tile is computed before it.
void DistributeTiles::hoist() {
  for (Operation &op : llvm::make_early_inc_range(body->without_terminator()))
    if (isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
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
  bool isIndex = isa<arith::AddIOp>(op) && value.getType().isIndex();
  Value made = isIndex ? addUp(in.b, in.numbers.lookup(op->getOperand(0)), in.numbers.lookup(op->getOperand(1)))
                       : Value(in.b.clone(*op, in.numbers)->getResult(cast<OpResult>(value).getResultNumber()));
  in.numbers.map(value, made);
  return made;
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
  WriteOp::create(in.b, loc, value, sums, in.places, Value(), IntegerAttr());
}

Value DistributeTiles::readSum(Statement &in) {
  return ReadOp::create(in.b, loc, sum->getResult(0).getType(), sums, in.places, Value(), IntegerAttr());
}

void DistributeTiles::begin(OpBuilder &b) {
  SmallVector<int64_t> sizes;
  for (LoopOp loop : tile)
    sizes.push_back(*loop.getTrip());
  sums = makeTile(b, loc, sum->getResult(0).getType(), sizes);
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

LoopOpInterface DistributeTiles::makeRounds(OpBuilder b) {
  SmallVector<LoopOpInterface> made;
  for (Operation *loop : rounds) {
    made.push_back(openRounds(b, loop));
    b = OpBuilder::atBlockEnd(&made.back()->getRegion(0).front());
  }
  made.front().setPipeline(cast<LoopOpInterface>(rounds.front()).getPipeline());
  Statement in = open(b, "round");
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
  for (LoopOpInterface loop : made) {
    OpBuilder end = OpBuilder::atBlockEnd(&loop->getRegion(0).front());
    YieldOp::create(end, loc);
  }
  return made.front();
}

/// A block has all its entries, or 0 where an axis has ended, of which the sum is 0.
static Value withoutEntry(Value value) {
  auto entry = value.getDefiningOp<arith::SelectOp>();
  return entry && entry.getCondition().getDefiningOp<EntryOp>() ? entry.getTrueValue() : value;
}

void DistributeTiles::finish(OpBuilder &b) {
  Statement in = open(b, "end");
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

FailureOr<LoopOpInterface> DistributeTiles::run() {
  if (failed(openGuards()) || failed(findSum()))
    return failure();
  hoist();
  OpBuilder b(outer);
  guardStatements(b);
  begin(b);
  LoopOpInterface round = makeRounds(b);
  finish(b);
  outer.erase();
  return round;
}

bool lacis::walksOwnLevels(func::FuncOp function) {
  for (unsigned number = 0; number < function.getNumArguments(); ++number)
    if (function.getArgAttr(number, "lacis.regroup"))
      return false;
  return !function.walk([](LoopOp loop) { return loop.getBalance() ? WalkResult::interrupt() : WalkResult::advance(); })
              .wasInterrupted();
}

FailureOr<LoopOpInterface> lacis::distributeTiles(func::FuncOp function) {
  SmallVector<LoopOp> rows, columns;
  function.walk<WalkOrder::PreOrder>([&](LoopOp loop) {
    if (loop.getTensorize() == TileSide::Rows)
      rows.push_back(loop);
    if (loop.getTensorize() == TileSide::Columns)
      columns.push_back(loop);
  });
  if (rows.size() != 1 || columns.size() != 1)
    return function.emitError("tiles: a tile has one loop over its rows and one over its columns");
  return DistributeTiles(rows[0], columns[0]).run();
}
