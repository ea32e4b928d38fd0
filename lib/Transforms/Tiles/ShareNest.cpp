// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nest that a product of tiles runs that is sampled on a pattern: over shares of the execution layout of the pattern.
///
/// for (i0, j0) in the pattern: for i1, j1: w = sum over b  -->  for worker: for (panel, share) in its list: for consumer:
/// for i1 in the rows of a panel, for j1 in the columns of several steps: w = sum over b, where there is such a step and
/// the block is stored.
///
/// Where a sum has rounds enough, shares that do not come out even for all workers are cut into parts, each of some of
/// the rounds.
#include "ShareNest.h"

#include "LayoutLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lacis;

/// The sum of a share is cut where each part has so many rounds.
static constexpr int64_t kRounds = 4;

namespace {

class ShareNest : public LayoutLoops {
public:
  explicit ShareNest(TileNest &nest) : LayoutLoops(nest), sumLoop(cast<LoopOp>(nest.product.sum)) {}
  LogicalResult run();

private:
  Value quotient(OpBuilder &at, Value lhs, int64_t rhs) {
    return arith::DivUIOp::create(at, loc, lhs, constant(rhs));
  }
  Value rest(OpBuilder &at, Value lhs, int64_t rhs) { return arith::RemUIOp::create(at, loc, lhs, constant(rhs)); }
  LogicalResult readIndices();
  void openItems(OpBuilder &at, Value worker);
  void openRounds(OpBuilder &at);
  void openTile(OpBuilder &at);
  void placeRow(OpBuilder &at, Value row);
  void placeColumn(OpBuilder &at, Value column);
  Value sum(OpBuilder &at);
  void write(OpBuilder &at);
  SmallVector<Value> placeOfKept(OpBuilder &at, Value slot);
  void make();

  LoopOp sumLoop;
  SetOp store;
  Value rowIndex, columnIndex; // of the marked nest
  Value rounds;                // of a whole sum
  Value begin, end;            // the steps of the panel
  Value first, from, count;    // of an item: its first step; and its rounds
  Value copy;                  // of the values; or null
  Value consumer, number;      // in the nest behind, the step of a consumer
  Value row, column;           // of the tile
  Value step;                  // that the column is in
  SmallVector<Value> block;    // the digits of the block in the step
  SmallVector<Value> within;   // where in the block
};

} // namespace

/// Which rows and columns a share has is what lists say; where a round of the sum begins, and in which matrix of a batch,
/// is what the marked nest says.
LogicalResult ShareNest::readIndices() {
  Product &product = nest.product;
  SmallVector<Value> left = foldDigits(product.readLeft.getIndices()), right = foldDigits(product.readRight.getIndices());
  rowIndex = left[left.size() - (product.isLeftAlong ? 2 : 1)];
  columnIndex = right[right.size() - (product.isRightAlong ? 2 : 1)];
  nest.top->walk([&](SetOp op) { store = op; });
  if (nest.depthLoops.size() == 1)
    return success();
  return refuseStatement(product.readLeft);
}

//===- Loops --------------------------------------------------------------===//

/// Whole shares, or where the sum is long enough parts of them. A share of values in copies is done for one after another.
void ShareNest::openItems(OpBuilder &at, Value worker) {
  Type index = at.getIndexType();
  rounds = numbers.get(b, sumLoop.getUpper());
  Value list = worker, share;
  if (nest.isCut()) {
    Value least = constant(*nest.lists.getParts() * kRounds);
    Value isLong = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, rounds, least);
    list = arith::SelectOp::create(at, loc, isLong, add(at, worker, workers), worker);
  }
  openEntries(at, list, {&panel, &share});
  if (nest.product.hasCopies) {
    LoopOp copies = nest.product.batchLoops[0];
    copy = open(at, "copy", numbers.get(b, copies.getUpper())).getCoordinate();
    numbers.map(copies.getCoordinate(), copy);
  }
  auto bounds = BoundsOp::create(at, loc, index, index, walked, 1, panel);
  begin = bounds.getLo(), end = bounds.getHi();
  first = add(at, begin, multiply(at, share, nest.share));
  openRounds(at);
}

/// The rounds of an item are all, or those of its part.
void ShareNest::openRounds(OpBuilder &at) {
  from = {}, count = rounds;
  if (!nest.isCut() || isSummingUp)
    return;
  auto upTo = [&](Value number) {
    return arith::DivUIOp::create(at, loc, arith::MulIOp::create(at, loc, rounds, number), parts).getResult();
  };
  from = upTo(part);
  count = arith::SubIOp::create(at, loc, upTo(add(at, part, constant(1))), from);
}

/// Rows stand where the layout put their group.
void ShareNest::placeRow(OpBuilder &at, Value row) {
  Value own = nest.splitsRows() ? consumer : constant(0), place, inside = row;
  if (layout.rows > nest.rows) {
    place = constant(0);
    inside = add(at, multiply(at, own, nest.rows), row);
  } else {
    place = multiply(at, own, nest.rows / layout.rows);
    if (layout.rows < nest.rows) {
      place = add(at, place, quotient(at, row, layout.rows));
      inside = rest(at, row, layout.rows);
    }
  }
  Value group = OriginOp::create(at, loc, at.getIndexType(), walked, add(at, multiply(at, panel, layout.height), place));
  numbers.map(rowIndex, add(at, multiply(at, group, layout.rows), inside));
  block.push_back(place), within.push_back(inside);
}

/// Those of a step are neighbours. Behind the last step there is none, and the last one's place is as good as any.
void ShareNest::placeColumn(OpBuilder &at, Value column) {
  Value own = nest.splitsRows() ? first : add(at, first, multiply(at, consumer, nest.ownSteps()));
  Value wanted = add(at, own, number ? number : quotient(at, column, layout.step));
  Value isThere = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, wanted, end);
  step = arith::MinSIOp::create(at, loc, wanted, arith::SubIOp::create(at, loc, end, constant(1)));
  auto found = CoordinateOp::create(at, loc, at.getIndexType(), at.getI1Type(), walked, 1, begin, step);
  Value across = number ? column : rest(at, column, layout.step);
  numbers.map(columnIndex, add(at, multiply(at, found.getDigits()[0], layout.step), across));
  if (layout.width > 1)
    block.push_back(rest(at, quotient(at, column, layout.columns), layout.width));
  else if (layout.hasColumnDigit())
    block.push_back(constant(0));
  within.push_back(rest(at, column, layout.columns));
  at = scf::IfOp::create(at, loc, isThere, /*withElseRegion=*/false).getThenBodyBuilder();
}

void ShareNest::openTile(OpBuilder &at) {
  number = {};
  if (isSummingUp) { // of whole shares there is nothing to do
    Value isCut = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, slot, constant(0));
    Value steps = arith::SelectOp::create(at, loc, isCut, constant(nest.ownSteps()), constant(0));
    number = open(at, "step", steps).getCoordinate();
  }
  LoopOp consumers = open(at, nest.consumers.getLoopName(), constant(nest.numConsumers()));
  consumers.setBind(ParallelUnit::Warpgroup);
  consumer = consumers.getCoordinate();
  LoopOp rows = openTileLoop(at, nest.rowLoops.back(), nest.rows, TileSide::Rows);
  int64_t size = isSummingUp ? layout.step : nest.columns;
  LoopOp columns = openTileLoop(at, nest.columnLoops.back(), size, TileSide::Columns);
  row = rows.getCoordinate(), column = columns.getCoordinate();
}

//===- Statements ---------------------------------------------------------===//

Value ShareNest::sum(OpBuilder &at) {
  Value begun = arith::ConstantOp::create(b, loc, nest.product.initial);
  auto loop = LoopOp::create(at, loc, nest.product.sumName(), count, begun, Reduction::Add);
  loop.setPipeline(nest.stages);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  RoleScalars round = numbers;
  round.map(sumLoop.getCoordinate(), from ? add(in, from, loop.getCoordinate()) : loop.getCoordinate());
  LoopOp depth = nest.depthLoops[0];
  auto factors = [&](OpBuilder &of, Value coordinate) {
    RoleScalars own = round;
    own.map(depth.getCoordinate(), coordinate);
    Value left = own.get(of, nest.product.readLeft);
    return std::pair(left, own.get(of, nest.product.readRight));
  };
  YieldOp::create(in, loc, addProducts(in, depth.getLoopName(), *depth.getTrip(), loop.getIterArgs()[0], factors));
  return loop.getResult(0);
}

/// An element of a sum in a slot: consumers have rows of their own, one below the other.
SmallVector<Value> ShareNest::placeOfKept(OpBuilder &at, Value slot) {
  Value own = number ? add(at, multiply(at, number, layout.step), column) : column;
  return {add(at, multiply(at, slot, nest.columns), own), add(at, multiply(at, consumer, nest.rows), row)};
}

/// Stores an element where the block is stored; of a step that is one block it is.
void ShareNest::write(OpBuilder &at) {
  Value position = step;
  if (!layout.isFull) {
    auto found = FindOp::create(at, loc, at.getIndexType(), at.getI1Type(), walked, 2, step, block);
    at = scf::IfOp::create(at, loc, found.getFound(), /*withElseRegion=*/false).getThenBodyBuilder();
    position = found.getPosition();
  }
  position = LocateOp::create(at, loc, at.getIndexType(), walked, 3, position, ValueRange());
  for (auto [level, digit] : llvm::enumerate(within))
    position = LocateOp::create(at, loc, at.getIndexType(), walked, 4 + level, position, digit);
  Value value = numbers.get(at, nest.product.result);
  if (Type element = getElementTypeOrSelf(store.getTensor()); value.getType() != element)
    value = arith::TruncFOp::create(at, loc, element, value);
  SetOp::create(at, store.getLoc(), value, store.getTensor(), position, copy, /*count=*/Value());
}

void ShareNest::make() {
  OpBuilder at(nest.top);
  LoopOp worker = openWorkers(at);
  block.clear(), within.clear();
  openItems(at, worker.getCoordinate());
  openTile(at);
  OpBuilder behind = at;
  placeRow(at, row);
  placeColumn(at, column);
  auto placeOf = [&](OpBuilder &in, Value own) { return placeOfKept(in, own); };
  if (isSummingUp)
    addUpParts(at, number, placeOf);
  else
    numbers.map(sumLoop.getResult(0), sum(at));
  if (nest.isCut() && !isSummingUp)
    keepPart(at, placeOf);
  write(at);
  close(behind);
}

LogicalResult ShareNest::run() {
  if (failed(readIndices()))
    return failure();
  makeTensors(layout.step);
  make();
  if (nest.isCut()) {
    isSummingUp = true;
    make();
  }
  return replace();
}

FailureOr<SmallVector<Operation *>> lacis::walkShares(TileNest &nest) {
  ShareNest shares(nest);
  return failed(shares.run()) ? FailureOr<SmallVector<Operation *>>() : shares.nests();
}
