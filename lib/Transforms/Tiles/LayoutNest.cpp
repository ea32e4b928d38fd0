// SPDX-License-Identifier: Apache-2.0
/// \file
/// The nest that a product of tiles runs: over the execution layout of its stored operand, in the order of work lists.
///
/// for i0: for b0: for i1, b1: y = sum over j0, j1  -->  for worker: for (panel, tile) in its list: for consumer: for part:
/// for i1, b1: y = sum over the steps of the panel, over the columns of a step. Rows stand where the layout put them; of the
/// tiles of a step those are read that are stored.
///
/// Panels that do not come out even for all workers are cut: an item is then some steps of one, whose sum is kept in a
/// workspace, and a nest behind adds up the parts of a panel, in their order.
#include "LayoutNest.h"

#include "TileStatements.h"
#include "WorkLists.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace lacis;

namespace {

class LayoutNest {
public:
  explicit LayoutNest(TileNest &nest)
      : b(nest.top), loc(nest.product.sum->getLoc()), nest(nest), layout(nest.layout), numbers(nest.top) {}
  LogicalResult run();
  SmallVector<Operation *> nests() const { return made; }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value multiply(OpBuilder &at, Value lhs, int64_t rhs) {
    return rhs == 1 ? lhs : arith::MulIOp::create(at, loc, lhs, constant(rhs)).getResult();
  }
  Value add(OpBuilder &at, Value lhs, Value rhs) { return arith::AddIOp::create(at, loc, lhs, rhs); }
  LogicalResult checkColumns();
  LoopOp open(OpBuilder &at, const LoopName &name, Value upper);
  LevelLoopOp open(OpBuilder &at, const LoopName &name, Value tensor, unsigned level, Value parent);
  void close(OpBuilder &at);
  void openItems(OpBuilder &at, Value worker);
  void openTile(OpBuilder &at);
  Value sum(OpBuilder &at);
  Value sumPart(OpBuilder &at, Value begun);
  Value addStep(OpBuilder &at, Value step, Value coordinate, Value carried);
  Value storedFactor(OpBuilder &at, Value step, Value depth);
  void write(OpBuilder &at);
  SmallVector<Value> placeOfKept(OpBuilder &at, Value slot);
  void addUpParts(OpBuilder &at);
  void make();
  LogicalResult replace();

  OpBuilder b; // before the nest
  Location loc;
  TileNest &nest;
  const TileLayout &layout;
  RoleScalars numbers; // of the marked nest, as the new one has them
  SmallVector<Operation *> loops, made;    // of one nest; the outermost of each
  Value rowIndex, depthIndex, columnIndex; // of the marked nest
  Value walked, lists, workers, kept;
  Value panel, place, row, column;       // the tile of a panel, and where in it
  Value first, count, part, parts, slot; // of an item: its steps, which part of the panel they are, and where its sum goes
  bool isSummingUp = false;              // the nest behind
};

} // namespace

//===- Loops --------------------------------------------------------------===//

LoopOp LayoutNest::open(OpBuilder &at, const LoopName &name, Value upper) {
  auto loop = LoopOp::create(at, loc, name, upper);
  loops.push_back(loop);
  at = OpBuilder::atBlockEnd(loop.getBlock());
  return loop;
}

LevelLoopOp LayoutNest::open(OpBuilder &at, const LoopName &name, Value tensor, unsigned level, Value parent) {
  auto loop = LevelLoopOp::create(at, loc, name, tensor, level, parent, ValueRange());
  loops.push_back(loop);
  at = OpBuilder::atBlockEnd(loop.getBlock());
  return loop;
}

void LayoutNest::close(OpBuilder &at) {
  for (Operation *loop : llvm::reverse(loops)) {
    YieldOp::create(at, loc);
    at.setInsertionPointAfter(loop);
  }
}

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
    fields.append({&first, &count, &part, &parts, &slot});
  for (auto [number, field] : llvm::enumerate(fields)) {
    LoopName name = number == 0 ? panels : columns + std::to_string(number);
    LevelLoopOp entry = open(at, name, lists, itemsOf(lists) + number, own);
    *field = entry.getCoordinates()[0];
    own = entry.getPosition();
  }
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
  LoopOp rows = open(at, nest.rowLoops.back().getLoopName(), constant(nest.rows));
  rows.setTensorize(TileSide::Rows);
  LoopOp columns = open(at, nest.columnLoops[0].getLoopName(), constant(nest.columns));
  columns.setTensorize(TileSide::Columns);
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
  auto depth = LoopOp::create(at, loc, name, constant(layout.step), carried, Reduction::Add);
  depth.setTensorize(TileSide::Depth);
  depth.setTf32(nest.isTf32);
  OpBuilder in = OpBuilder::atBlockEnd(depth.getBlock());
  RoleScalars own = numbers;
  own.map(depthIndex, add(in, multiply(in, coordinate, layout.step), depth.getCoordinate()));
  auto wide = [&](Value value) {
    bool isWide = value.getType().isF32();
    return isWide ? value : arith::ExtFOp::create(in, loc, in.getF32Type(), value).getResult();
  };
  Value stored = wide(storedFactor(in, step, depth.getCoordinate()));
  Value product = arith::MulFOp::create(in, loc, stored, wide(own.get(in, nest.product.readRight)));
  YieldOp::create(in, loc, arith::AddFOp::create(in, loc, depth.getIterArgs()[0], product).getResult());
  return depth.getResult(0);
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

/// Who has part n of a panel adds up the tiles that are numbered n modulo the number of parts: the first part, and the
/// others onto it, in their order.
void LayoutNest::addUpParts(OpBuilder &at) {
  Value isCut = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, slot, constant(0));
  Value whose = arith::RemUIOp::create(at, loc, place, parts);
  Value isOwn = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, whose, part);
  Value condition = arith::AndIOp::create(at, loc, isCut, isOwn);
  OpBuilder then = scf::IfOp::create(at, loc, condition, /*withElseRegion=*/false).getThenBodyBuilder();
  Value slots = arith::SubIOp::create(then, loc, slot, part), others = arith::SubIOp::create(then, loc, parts, constant(1));
  auto read = [&](OpBuilder &from, Value own) {
    return ReadOp::create(from, loc, b.getF32Type(), kept, placeOfKept(from, own), Value(), IntegerAttr()).getResult();
  };
  auto loop = LoopOp::create(then, loc, "part", others, read(then, slots), Reduction::Add);
  OpBuilder in = OpBuilder::atBlockEnd(loop.getBlock());
  Value next = add(in, slots, add(in, loop.getCoordinate(), constant(1)));
  YieldOp::create(in, loc, arith::AddFOp::create(in, loc, loop.getIterArgs()[0], read(in, next)).getResult());
  numbers.map(nest.product.sum->getResult(0), loop.getResult(0));
  write(then);
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
  if (slot && !isSummingUp) {
    Value isWhole = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, slot, constant(0));
    auto guard = scf::IfOp::create(at, loc, isWhole, /*withElseRegion=*/true);
    OpBuilder otherwise = guard.getElseBodyBuilder();
    Value sum = numbers.get(otherwise, nest.product.sum->getResult(0));
    WriteOp::create(otherwise, loc, sum, kept, placeOfKept(otherwise, slot), Value(), IntegerAttr());
    at = guard.getThenBodyBuilder();
  }
  Value value = numbers.get(at, before.getValue());
  auto indices = llvm::map_to_vector(before.getIndices(), [&](Value index) { return numbers.get(at, index); });
  WriteOp::create(at, before.getLoc(), value, before.getTensor(), indices, Value(), IntegerAttr());
}

/// The marked nest goes, if nothing asks for its loops.
LogicalResult LayoutNest::replace() {
  auto isOfOld = [&](Value value) { return nest.top->isAncestor(value.getParentBlock()->getParentOp()); };
  bool readsOld = false; // what follows the sum may ask for a loop over rows that is no more
  for (Operation *own : made)
    own->walk([&](Operation *op) { readsOld |= llvm::any_of(op->getOperands(), isOfOld); });
  if (readsOld)
    return refuseStatement(nest.product.write);
  eraseNest(nest);
  return success();
}

void LayoutNest::make() {
  OpBuilder at(nest.top);
  numbers = RoleScalars(nest.top);
  loops.clear();
  LoopOp worker = open(at, "n", workers);
  worker.setBind(ParallelUnit::BlockX);
  made.push_back(worker);
  b.setInsertionPoint(worker); // of constants
  openItems(at, worker.getCoordinate());
  openTile(at);
  OpBuilder behind = at;
  if (isSummingUp) {
    addUpParts(at);
  } else {
    numbers.map(nest.product.sum->getResult(0), sum(at));
    write(at);
  }
  close(behind);
}

LogicalResult LayoutNest::run() {
  Product &product = nest.product;
  SmallVector<Value> output = foldDigits(product.write.getIndices()), dense = foldDigits(product.readRight.getIndices());
  columnIndex = output[output.size() - (product.isRowsFirst ? 1 : 2)];
  rowIndex = output[output.size() - (product.isRowsFirst ? 2 : 1)];
  depthIndex = dense[dense.size() - (!product.isRightAlong ? 2 : 1)];
  if (failed(checkColumns()))
    return failure();
  auto attribute = LayoutAttr::get(b.getContext(), layout.format, layout.capacity, 0);
  walked = RegroupOp::create(b, loc, product.tensor, attribute);
  lists = makeLists(b, nest, walked);
  workers = tensor::DimOp::create(b, loc, lists, constant(workersOf(lists)));
  if (nest.isCut())
    kept = makeKept(b, nest, workers, nest.columns);
  make();
  if (nest.isCut()) {
    isSummingUp = true;
    make();
  }
  return replace();
}

FailureOr<SmallVector<Operation *>> lacis::walkLayout(TileNest &nest) {
  LayoutNest layout(nest);
  return failed(layout.run()) ? FailureOr<SmallVector<Operation *>>() : layout.nests();
}
