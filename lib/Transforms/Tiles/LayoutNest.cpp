// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nest that a product of tiles runs: over the execution layout of its stored operand, in the order of work lists.
///
/// for i0: for b0: for i1, b1: y = sum over j0, j1  -->  for worker: for (panel, tile) in its list: for consumer: for part:
/// for i1, b1: y = sum over the steps of the panel, over the columns of a step. Rows stand where the layout put them; of the
/// tiles of a step those are read that are stored.
///
/// Panels that do not come out even for all workers are cut: an item is then some steps of one.
#include "LayoutNest.h"

#include "LayoutLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace lacis;

namespace {

class LayoutNest : public LayoutLoops {
public:
  explicit LayoutNest(TileNest &nest) : LayoutLoops(nest) {}
  LogicalResult run();

private:
  LogicalResult checkColumns();
  void openItems(OpBuilder &at, Value worker) override;
  void openTile(OpBuilder &at) override;
  Value sum(OpBuilder &at) override;
  Value sumPart(OpBuilder &at, Value begun);
  Value addStep(OpBuilder &at, Value step, Value coordinate, Value carried);
  Value storedFactor(OpBuilder &at, Value step, Value depth);
  void write(OpBuilder &at) override;
  SmallVector<Value> placeOfKept(OpBuilder &at, Value slot) override;
  Value tileNumber() override { return place; }

  Value rowIndex, depthIndex, columnIndex; // of the marked nest
  Value place, row, column;                // the tile of a panel, and where in it
  Value first, count;                      // of a part: its steps
};

} // namespace

//===- Loops --------------------------------------------------------------===//

/// The worker's list: groups of neighbouring tiles of the dense axis, in each group its pairs of panel and tile.
void LayoutNest::openItems(OpBuilder &at, Value worker) {
  LoopName panels = nest.top.getLoopName(), columns = nest.items.getLoopName();
  Value tiles = numbers.get(b, nest.items.getUpper()), raster = constant(nest.lists.getRaster());
  Value one = constant(1), none = constant(0), isFew;
  Value groups = arith::CeilDivUIOp::create(at, loc, tiles, raster);
  if (nest.isCut()) {
    isFew = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ule, tiles, constant(*nest.lists.getCut()));
    Value some = arith::MinUIOp::create(at, loc, groups, one);
    groups = arith::SelectOp::create(at, loc, isFew, some, isSummingUp ? none : groups);
  }
  LoopOp group = open(at, columns + "0", groups);
  Value begin = arith::MulIOp::create(at, loc, group.getCoordinate(), raster);
  Value left = arith::SubIOp::create(at, loc, tiles, begin);
  Value width = arith::MinUIOp::create(at, loc, left, raster);
  Value turn = arith::RemUIOp::create(at, loc, group.getCoordinate(), constant(nest.lists.getGroups()));
  Value before = arith::MulIOp::create(at, loc, turn, raster);
  Value list = add(at, before, arith::SubIOp::create(at, loc, width, one));
  if (nest.isCut()) {
    Value behind = add(at, tiles, constant(nest.lists.getGroups() * nest.lists.getRaster() - 1));
    list = arith::SelectOp::create(at, loc, isFew, behind, list);
  }
  Value own = add(at, arith::MulIOp::create(at, loc, list, workers), worker), tile;
  SmallVector<Value *> fields{&panel, &tile};
  if (nest.isCut())
    fields.append({&first, &count});
  openEntries(at, own, fields);
  numbers.map(nest.items.getCoordinate(), add(at, begin, tile));
}

/// The rows of a tile are neighbours, behind where the layout put the group.
void LayoutNest::openTile(OpBuilder &at) {
  LoopOp each;
  if (nest.numParts() > 1 && isSummingUp)
    each = open(at, nest.parts.front().getLoopName(), constant(nest.numParts()));
  LoopOp consumers = open(at, nest.consumers.getLoopName(), constant(nest.numConsumers()));
  consumers.setBind(ParallelUnit::Warpgroup);
  place = multiply(at, consumers.getCoordinate(), nest.numParts());
  if (nest.numParts() > 1 && !isSummingUp) {
    each = open(at, nest.parts.front().getLoopName(), constant(nest.numParts()));
    each.setJam(nest.numParts());
  }
  place = each ? add(at, place, each.getCoordinate()) : place;
  LoopOp rows = openTileLoop(at, nest.rowLoops.back(), nest.rows, TileSide::Rows);
  LoopOp columns = openTileLoop(at, nest.columnLoops[0], nest.columns, TileSide::Columns);
  row = rows.getCoordinate(), column = columns.getCoordinate();
  numbers.map(nest.columnLoops[0].getCoordinate(), column);
  Value number = add(at, multiply(at, panel, layout.height), place);
  Value group = OriginOp::create(at, loc, at.getIndexType(), walked, number);
  numbers.map(rowIndex, add(at, multiply(at, group, layout.rows), row));
}

//===- The sum ------------------------------------------------------------===//

/// The tile at a place of a step, and of its columns, if that is stored: else there is 0.
Value LayoutNest::storedFactor(OpBuilder &at, Value step, Value depth) {
  Type index = at.getIndexType();
  Value tensor = walked, across = depth;
  SmallVector<Value> digits{place};
  if (layout.width > 1) {
    digits.push_back(arith::DivUIOp::create(at, loc, depth, constant(layout.columns)));
    across = arith::RemUIOp::create(at, loc, depth, constant(layout.columns));
  } else if (layout.hasColumnDigit()) {
    digits.push_back(constant(0));
  }
  auto found = FindOp::create(at, loc, index, at.getI1Type(), tensor, 2, step, digits);
  Value position = found.getPosition();
  unsigned level = 3;
  if (layout.isLinked)
    position = LocateOp::create(at, loc, index, tensor, level++, position, ValueRange());
  SmallVector<Value> inTile{row, across};
  if (layout.transposed)
    std::swap(inTile[0], inTile[1]);
  for (Value digit : inTile)
    position = LocateOp::create(at, loc, index, tensor, level++, position, digit);
  Type element = getElementTypeOrSelf(nest.product.stored);
  Value value = ValueOp::create(at, loc, element, tensor, position, /*batch=*/Value());
  Value none = arith::ConstantOp::create(at, loc, at.getZeroAttr(element));
  return arith::SelectOp::create(at, loc, found.getFound(), value, none);
}

/// sum += over the columns of a step
Value LayoutNest::addStep(OpBuilder &at, Value step, Value coordinate, Value carried) {
  LoopName name = nest.depthLoops.empty() ? nest.product.sumName() + "1" : nest.depthLoops.back().getLoopName();
  return addProducts(at, name, layout.step, carried, [&](OpBuilder &in, Value depth) {
    RoleScalars own = numbers;
    own.map(depthIndex, add(in, multiply(in, coordinate, layout.step), depth));
    Value stored = storedFactor(in, step, depth);
    return std::pair(stored, own.get(in, nest.product.readRight));
  });
}

/// Over the steps of an item.
Value LayoutNest::sumPart(OpBuilder &at, Value begun) {
  Type index = at.getIndexType();
  Value begin = BoundsOp::create(at, loc, index, index, walked, 1, panel).getLo(), from = add(at, begin, first);
  auto steps = LoopOp::create(at, loc, nest.product.sumName(), count, begun, Reduction::Add);
  steps.setPipeline(nest.stages);
  OpBuilder in = OpBuilder::atBlockEnd(steps.getBlock());
  Value position = add(in, from, steps.getCoordinate());
  auto found = CoordinateOp::create(in, loc, index, in.getI1Type(), walked, 1, begin, position);
  YieldOp::create(in, loc, addStep(in, position, found.getDigits()[0], steps.getIterArgs()[0]));
  return steps.getResult(0);
}

Value LayoutNest::sum(OpBuilder &at) {
  Value begun = numbers.get(at, nest.product.sum->getOperands().back());
  if (count)
    return sumPart(at, begun);
  auto steps = LevelLoopOp::create(at, loc, nest.product.sumName(), walked, 1, panel, begun, Reduction::Add);
  steps.setPipeline(nest.stages);
  OpBuilder in = OpBuilder::atBlockEnd(steps.getBlock());
  YieldOp::create(in, loc, addStep(in, steps.getPosition(), steps.getCoordinates()[0], steps.getIterArgs()[0]));
  return steps.getResult(0);
}

//===- Parts of panels ----------------------------------------------------===//

/// An element of a sum in a slot: tiles of a panel stand one below the other.
SmallVector<Value> LayoutNest::placeOfKept(OpBuilder &at, Value slot) {
  return {add(at, multiply(at, slot, nest.columns), column), add(at, multiply(at, place, nest.rows), row)};
}

//===- The nest -----------------------------------------------------------===//

/// Columns of a tile are neighbours: the innermost loop over them is the tile's.
LogicalResult LayoutNest::checkColumns() {
  LoopOp column = nest.columnLoops[0];
  TileVariance variance;
  variance.add(column);
  if (variance.placeOf(columnIndex))
    return success();
  return column.emitError("tiles: rounds of loop '")
         << column.getName() << "' are no neighbours along '" << nest.product.columns
         << "'; tensorize the innermost loop over it";
}

void LayoutNest::write(OpBuilder &at) {
  WriteOp before = nest.product.write;
  Value value = numbers.get(at, before.getValue());
  auto indices = llvm::map_to_vector(before.getIndices(), [&](Value index) { return numbers.get(at, index); });
  WriteOp::create(at, before.getLoc(), value, before.getTensor(), indices, Value(), IntegerAttr());
}

LogicalResult LayoutNest::run() {
  Product &product = nest.product;
  SmallVector<Value> output = foldDigits(product.write.getIndices()), dense = foldDigits(product.readRight.getIndices());
  columnIndex = output[output.size() - (product.isRowsFirst ? 1 : 2)];
  rowIndex = output[output.size() - (product.isRowsFirst ? 2 : 1)];
  depthIndex = dense[dense.size() - (!product.isRightAlong ? 2 : 1)];
  if (failed(checkColumns()))
    return failure();
  makeTensors(nest.columns, nest.columns, nest.rows * nest.numConsumers() * nest.numParts());
  return replace();
}

FailureOr<SmallVector<Operation *>> lacis::walkLayout(TileNest &nest) {
  LayoutNest layout(nest);
  return failed(layout.run()) ? FailureOr<SmallVector<Operation *>>() : layout.nests();
}
