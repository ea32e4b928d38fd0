// SPDX-License-Identifier: Apache-2.0
/// \file
/// The guards of what a checked kernel copies in tiles: places come from the pattern, so they may lie outside.
#include "AccessChecks.h"
#include "EmitSize.h"
#include "Addressing.h"

using namespace mlir;
using namespace lacis;

/// Boxes that begin this little past an edge are what padding asks for; a copy engine leaves them out.
static constexpr int64_t kSlack = 256;

/// 0 <= value < size
Value AccessChecks::within(OpBuilder &b, Location loc, Value value, Value size) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, value, size);
}

static Value wide(OpBuilder &b, Value value) {
  return castInteger(b, value.getLoc(), value, b.getI64Type());
}

/// A copy of tiles that would begin outside is none; what it would begin with is recorded.
void AccessChecks::guardTile(Operation *copy, Value array, Type element, Value first, Value inside) {
  OpBuilder b(copy);
  Location loc = copy->getLoc();
  Place place{cast<BlockArgument>(array), first};
  Value extent = extentOf(b, loc, place.array, element);
  auto choice = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/true);
  copy->moveBefore(choice.thenBlock()->getTerminator());
  OpBuilder otherwise = OpBuilder::atBlockBegin(choice.elseBlock());
  record(otherwise, loc, place, extent);
}

/// A box begins inside its matrix or just behind it, and goes to a tile that there is.
void AccessChecks::guardLoadTile(LoadTileOp load) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  TileType tile = load.getTile().getType();
  ArrayRef<Attribute> sizes = load.getShape()->getValue().take_back(2);
  Value rows = emitSize(b, loc, kernel, cast<SizeAttr>(sizes[0]));
  Value columns = emitSize(b, loc, kernel, cast<SizeAttr>(sizes[1]));
  Value row = wide(b, load.getIndices().drop_back().back()), column = wide(b, load.getIndices().back());
  auto near = [&](Value value, Value size) {
    return within(b, loc, value, arith::AddIOp::create(b, loc, size, constant(b, loc, kSlack)));
  };
  Value inside = arith::AndIOp::create(b, loc, near(row, rows), near(column, columns));
  if (load.getPlace())
    inside = arith::AndIOp::create(b, loc, inside,
                                   within(b, loc, wide(b, load.getPlace()), constant(b, loc, tile.getCount())));
  if (sizes.size() != load.getShape()->size()) { // of a batch, behind the rows of the matrices before it
    Value matrix = emitMatrixNumber(b, loc, kernel, *load.getShape(), load.getIndices());
    SizeAttr batch = cast<SizeAttr>((*load.getShape())[0]);
    for (Attribute more : load.getShape()->getValue().drop_front().drop_back(2))
      batch = batch.times(cast<SizeAttr>(more));
    Value matrices = emitSize(b, loc, kernel, batch);
    inside = arith::AndIOp::create(b, loc, inside, within(b, loc, matrix, matrices));
    row = arith::AddIOp::create(b, loc, row, arith::MulIOp::create(b, loc, matrix, rows));
  }
  Value first = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, row, columns), column);
  guardTile(load, load.getSource(), tile.getElementType(), first, inside);
}

/// A run of tiles lies inside its array, and fits the list it goes to.
void AccessChecks::guardLoadRun(LoadRunOp load) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  TileType tile = load.getTile().getType();
  Type element = tile.getElementType();
  int64_t elements = tile.getRows() * tile.getColumns();
  Value position = wide(b, load.getPosition()), count = wide(b, load.getCount());
  Value tiles = arith::DivUIOp::create(b, loc, bytesOf(cast<BlockArgument>(load.getSource()), element),
                                       constant(b, loc, elements * bytesOfElement(element)));
  Value most = arith::SubIOp::create(b, loc, tiles, count), one = constant(b, loc, 1);
  Value fits = within(b, loc, count, constant(b, loc, tile.getCount() + 1));
  Value lies = within(b, loc, position, arith::AddIOp::create(b, loc, most, one));
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, count, tiles);
  Value inside = arith::AndIOp::create(b, loc, arith::AndIOp::create(b, loc, fits, lies), some);
  Value first = arith::MulIOp::create(b, loc, position, constant(b, loc, elements));
  guardTile(load, load.getSource(), element, first, inside);
}

/// Rows behind the end are known to be none; those before the beginning are made none.
void AccessChecks::guardRows(Operation *load, Value array, Type element, Value first, OpOperand &size) {
  OpBuilder b(load);
  Location loc = load->getLoc();
  Place place{cast<BlockArgument>(array), first};
  Value extent = extentOf(b, loc, place.array, element);
  Type type = size.get().getType();
  Value none = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, 0));
  Value lies = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, first, constant(b, loc, 0));
  if (isa<LoadEntriesOp>(load)) { // rows before the beginning are not read; of no bitmap none is
    lies = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, first, extent);
    Value isNone = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, size.get(), none);
    lies = arith::OrIOp::create(b, loc, lies, isNone);
  }
  Value outside = arith::XOrIOp::create(b, loc, lies, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  OpBuilder then = scf::IfOp::create(b, loc, outside, /*withElseRegion=*/false).getThenBodyBuilder();
  record(then, loc, place, extent);
  size.set(arith::SelectOp::create(b, loc, lies, size.get(), none));
}

/// Does tile `place` lie in the workspace? Where it does not, that is recorded.
Value AccessChecks::liesInTiles(OpBuilder &b, Location loc, Value workspace, Value place, AccType type) {
  int64_t elements = type.getRows() * type.getColumns();
  auto array = cast<BlockArgument>(workspace);
  Value tiles = arith::DivUIOp::create(b, loc, bytesOf(array, type.getElementType()),
                                       constant(b, loc, elements * bytesOfElement(type.getElementType())));
  Value number = wide(b, place), lies = within(b, loc, number, tiles);
  Value outside = arith::XOrIOp::create(b, loc, lies, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  OpBuilder then = scf::IfOp::create(b, loc, outside, /*withElseRegion=*/false).getThenBodyBuilder();
  Place first{array, arith::MulIOp::create(then, loc, number, constant(then, loc, elements))};
  record(then, loc, first, extentOf(then, loc, array, type.getElementType()));
  return lies;
}

/// A tile of a workspace that lies outside is the first one.
void AccessChecks::guardLoadAcc(LoadAccOp load) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  Value lies = liesInTiles(b, loc, load.getSource(), load.getPlace(), load.getAcc().getType());
  Value none = arith::ConstantOp::create(b, loc, b.getIntegerAttr(load.getPlace().getType(), 0));
  load.getPlaceMutable().assign(arith::SelectOp::create(b, loc, lies, load.getPlace(), none));
}

/// Nothing is stored outside.
void AccessChecks::guardStoreAcc(StoreAccOp store) {
  OpBuilder b(store);
  Value lies = liesInTiles(b, store.getLoc(), store.getTarget(), store.getPlace(), store.getAcc().getType());
  auto guard = scf::IfOp::create(b, store.getLoc(), lies, /*withElseRegion=*/false);
  store->moveBefore(guard.thenBlock()->getTerminator());
}

void AccessChecks::guardTileAccess(Operation *op) {
  OpBuilder b(op);
  if (auto load = dyn_cast<LoadTileOp>(op))
    return guardLoadTile(load);
  if (auto load = dyn_cast<LoadRunOp>(op))
    return guardLoadRun(load);
  if (auto load = dyn_cast<LoadAccOp>(op))
    return guardLoadAcc(load);
  if (auto store = dyn_cast<StoreAccOp>(op))
    return guardStoreAcc(store);
  if (auto load = dyn_cast<LoadRowsOp>(op))
    return guardRows(load, load.getSource(), *load.getType(), wide(b, load.getFirst()), load.getSizeMutable()[0]);
  if (auto load = dyn_cast<LoadColumnsOp>(op))
    return guardRows(load, load.getSource(), *load.getType(), wide(b, load.getFirst()), load.getSizeMutable()[0]);
  auto load = cast<LoadEntriesOp>(op);
  Value stride = constant(b, op->getLoc(), load.getStride());
  for (Value row : load.getRows()) {
    b.setInsertionPoint(op);
    Value first = arith::MulIOp::create(b, op->getLoc(), wide(b, row), stride);
    guardRows(load, load.getBitmap(), b.getI8Type(), first, load.getSizeMutable());
  }
}
