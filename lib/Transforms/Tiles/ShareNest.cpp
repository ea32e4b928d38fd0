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
  void openItems(OpBuilder &at, Value worker) override;
  void countSteps(OpBuilder &at, Value steps);
  void openRounds(OpBuilder &at);
  void openTile(OpBuilder &at) override;
  void placeRow(OpBuilder &at);
  void gatherRow(OpBuilder &at);
  void findStep(OpBuilder &at);
  void placeColumn(OpBuilder &at);
  Value sum(OpBuilder &at) override;
  void write(OpBuilder &at) override;
  int64_t columnsOfSlot() { return nest.columns * (nest.splitsRows() ? 1 : nest.numConsumers()); }
  SmallVector<Value> placeOfKept(OpBuilder &at, Value slot) override;
  Value tileNumber() override { return number; }

  LoopOp sumLoop;
  SetOp store;
  Value rowIndex, columnIndex; // of the marked nest
  Value rounds;                // of a whole sum
  Value begin, end;            // the steps of the panel, up to those of the share
  Value first, from, count;    // of an item: its first step; and its rounds
  Value copy;                  // of the values; or null
  Value own;                   // the steps of a consumer
  Value consumer, number;      // in the nest behind, the step of a consumer
  Value row, column;           // of the tile
  Value step, isThere;         // that the column is in, where there is one
  Value position, isStored;    // of the block in the bits of the step, where it is known
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
  Value list = worker, share, steps;
  if (nest.isCut()) {
    Value least = constant(*nest.lists.getParts() * kRounds);
    Value isLong = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, rounds, least);
    list = arith::SelectOp::create(at, loc, isLong, add(at, worker, workers), worker);
  }
  SmallVector<Value *> fields{&panel, &share};
  if (nest.isGathered())
    fields.push_back(&steps);
  openEntries(at, list, fields);
  if (nest.product.hasCopies) {
    LoopOp copies = nest.product.batchLoops[0];
    copy = open(at, "copy", numbers.get(b, copies.getUpper())).getCoordinate();
    numbers.map(copies.getCoordinate(), copy);
  }
  auto bounds = BoundsOp::create(at, loc, index, index, walked, 1, panel);
  begin = bounds.getLo(), end = bounds.getHi();
  first = add(at, begin, nest.isGathered() ? share : multiply(at, share, nest.share));
  own = constant(nest.ownSteps());
  if (nest.isGathered())
    countSteps(at, steps);
  openRounds(at);
}

/// A gathered share says how many steps it has; of fewer steps each consumer has fewer.
void ShareNest::countSteps(OpBuilder &at, Value steps) {
  end = add(at, first, steps);
  if (isSummingUp)
    return;
  SmallVector<int64_t> versions;
  for (int64_t count = nest.ownSteps(); count > 0; count -= std::max<int64_t>(nest.ownSteps() / 4, 1))
    versions.insert(versions.begin(), count);
  Value each = arith::CeilDivUIOp::create(at, loc, steps, constant(nest.numConsumers()));
  own = VersionOp::create(at, loc, at.getIndexType(), each, versions);
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
void ShareNest::placeRow(OpBuilder &at) {
  Value group = nest.splitsRows() ? consumer : constant(0), place, inside = row;
  if (layout.rows > nest.rows) {
    place = constant(0);
    inside = add(at, multiply(at, group, nest.rows), row);
  } else {
    place = multiply(at, group, nest.rows / layout.rows);
    if (layout.rows < nest.rows) {
      place = add(at, place, quotient(at, row, layout.rows));
      inside = rest(at, row, layout.rows);
    }
  }
  Value number = add(at, multiply(at, panel, layout.height), place);
  Value origin = OriginOp::create(at, loc, at.getIndexType(), walked, number);
  numbers.map(rowIndex, add(at, multiply(at, origin, layout.rows), inside));
  block.push_back(place), within.push_back(inside);
}

/// The blocks of a step, counted from its first; they stand anywhere in the panel.
void ShareNest::gatherRow(OpBuilder &at) {
  Type index = at.getIndexType();
  auto bounds = BoundsOp::create(at, loc, index, index, walked, 2, step);
  position = add(at, bounds.getLo(), quotient(at, row, layout.rows));
  isStored = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, position, bounds.getHi());
  SmallVector<Type> types(formatOf(walked).getLevels()[2].getDigits().size(), index);
  types.push_back(at.getI1Type());
  Value group = CoordinateOp::create(at, loc, types, walked, 2, bounds.getLo(), position).getDigits()[0];
  Value last = constant(layout.panel - layout.rows);
  Value offset = arith::MinUIOp::create(at, loc, multiply(at, group, layout.rows), last);
  Value inside = rest(at, row, layout.rows);
  Value origin = OriginOp::create(at, loc, index, walked, multiply(at, panel, layout.height)); // others follow it
  numbers.map(rowIndex, add(at, multiply(at, origin, layout.rows), add(at, offset, inside)));
  within.push_back(inside);
}

/// Behind the last step there is none, and the last one's place is as good as any.
void ShareNest::findStep(OpBuilder &at) {
  Value before = nest.splitsRows() ? first : add(at, first, arith::MulIOp::create(at, loc, consumer, own));
  Value part = number ? number : quotient(at, column, layout.step), wanted = add(at, before, part);
  isThere = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, wanted, end);
  step = arith::MinSIOp::create(at, loc, wanted, arith::SubIOp::create(at, loc, end, constant(1)));
  if (!nest.isGathered() || number)
    return;
  Value isOwn = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, part, own);
  isThere = arith::AndIOp::create(at, loc, isOwn, isThere);
}

/// The columns of a step are neighbours. Gathered ones are read from a window that begins at a tile.
void ShareNest::placeColumn(OpBuilder &at) {
  auto columnOf = [&](Value step) {
    auto found = CoordinateOp::create(at, loc, at.getIndexType(), at.getI1Type(), walked, 1, begin, step);
    return multiply(at, found.getDigits()[0], layout.step);
  };
  Value across = number ? column : rest(at, column, layout.step), from = columnOf(step);
  if (nest.isGathered()) {
    int64_t line = nest.sideOf(layout.step);
    Value window = multiply(at, arith::DivUIOp::create(at, loc, columnOf(first), constant(line)), line);
    Value last = columnOf(arith::SubIOp::create(at, loc, end, constant(1)));
    auto bounded = [&](Value place, Value most) {
      return arith::MinUIOp::create(at, loc, arith::SubIOp::create(at, loc, place, window), most).getResult();
    };
    last = bounded(last, constant(*nest.lists.getWithin() - layout.step));
    numbers.map(columnIndex, add(at, window, add(at, bounded(from, last), across)));
  } else {
    numbers.map(columnIndex, add(at, from, across));
  }
  if (layout.width > 1)
    block.push_back(rest(at, quotient(at, column, layout.columns), layout.width));
  else if (layout.hasColumnDigit())
    block.push_back(constant(0));
  within.push_back(rest(at, column, layout.columns));
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
  block.clear(), within.clear();
  findStep(at);
  nest.isGathered() ? gatherRow(at) : placeRow(at);
  placeColumn(at);
  at = scf::IfOp::create(at, loc, isThere, /*withElseRegion=*/false).getThenBodyBuilder();
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

/// An element of a sum in a slot, whose consumers have rows of their own, or steps.
SmallVector<Value> ShareNest::placeOfKept(OpBuilder &at, Value slot) {
  Value across = number ? add(at, multiply(at, number, layout.step), column) : column, down = row;
  if (nest.splitsRows())
    down = add(at, multiply(at, consumer, nest.rows), row);
  else
    across = add(at, multiply(at, arith::MulIOp::create(at, loc, consumer, own), layout.step), across);
  return {add(at, multiply(at, slot, columnsOfSlot()), across), down};
}

/// Stores an element where the block is stored; of a step that is one block it is.
void ShareNest::write(OpBuilder &at) {
  Value place = step;
  if (nest.isGathered()) {
    at = scf::IfOp::create(at, loc, isStored, /*withElseRegion=*/false).getThenBodyBuilder();
    place = position;
  } else if (!layout.isFull) {
    auto found = FindOp::create(at, loc, at.getIndexType(), at.getI1Type(), walked, 2, step, block);
    at = scf::IfOp::create(at, loc, found.getFound(), /*withElseRegion=*/false).getThenBodyBuilder();
    place = found.getPosition();
  }
  place = LocateOp::create(at, loc, at.getIndexType(), walked, 3, place, ValueRange());
  for (auto [level, digit] : llvm::enumerate(within))
    place = LocateOp::create(at, loc, at.getIndexType(), walked, 4 + level, place, digit);
  Value value = numbers.get(at, nest.product.result);
  if (Type element = getElementTypeOrSelf(store.getTensor()); value.getType() != element)
    value = arith::TruncFOp::create(at, loc, element, value);
  SetOp::create(at, store.getLoc(), value, store.getTensor(), place, copy, /*count=*/Value());
}

LogicalResult ShareNest::run() {
  if (failed(readIndices()))
    return failure();
  makeTensors(layout.step, columnsOfSlot(), nest.splitsRows() ? layout.panel : nest.rows);
  return replace();
}

FailureOr<SmallVector<Operation *>> lacis::walkShares(TileNest &nest) {
  ShareNest shares(nest);
  return failed(shares.run()) ? FailureOr<SmallVector<Operation *>>() : shares.nests();
}
