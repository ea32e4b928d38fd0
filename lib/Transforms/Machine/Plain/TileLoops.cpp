// SPDX-License-Identifier: Apache-2.0
/// \file
/// Structure and loads of a role in plain loops: places of the ring vanish, loops and tests hand accumulators on in
/// memory.
#include "TileLoops.h"
#include "../../Buffers/EmitSize.h"
#include "../../Buffers/Addressing.h"
#include "../Roles/Reads.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::plain;

static bool isTileValue(Type type) { return isa<RingType, TileType, AccType>(type); }

TileLoops::TileLoops(func::FuncOp kernel, Value thread, int64_t threads)
    : kernel(kernel), loc(kernel.getLoc()), entry(kernel.getBody()), thread(thread), threads(threads) {
  if (Operation *op = thread.getDefiningOp())
    entry.setInsertionPointAfter(op);
}

//===- Arithmetic ---------------------------------------------------------===//

Value TileLoops::constant(int64_t value) {
  Value &known = constants[value];
  return known ? known : known = arith::ConstantOp::create(entry, loc, entry.getI64IntegerAttr(value)).getResult();
}

Value TileLoops::wide(OpBuilder &b, Value value) { return castInteger(b, loc, value, b.getI64Type()); }
Value TileLoops::add(OpBuilder &b, Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
Value TileLoops::multiply(OpBuilder &b, Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }

/// Of unsigned numbers: what is negative is too large.
Value TileLoops::less(OpBuilder &b, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y);
}

Value TileLoops::address(OpBuilder &b, Value base, Type element, Value index) {
  return LLVM::GEPOp::create(b, loc, base.getType(), element, base, ArrayRef<LLVM::GEPArg>{index});
}

void TileLoops::loop(OpBuilder &b, Value begin, Value end, Value step, Body body) {
  auto made = scf::ForOp::create(b, loc, begin, end, step);
  OpBuilder in = OpBuilder::atBlockBegin(made.getBody());
  body(in, made.getInductionVar());
}

Value TileLoops::size(Attribute size) {
  Value &known = sizes[size];
  return known ? known : known = emitSize(entry, kernel.getLoc(), kernel, cast<SizeAttr>(size));
}

Value TileLoops::allocate(Type element, int64_t count) {
  auto pointer = LLVM::LLVMPointerType::get(entry.getContext());
  constexpr unsigned alignment = 64;
  return LLVM::AllocaOp::create(entry, loc, pointer, element, constant(count), alignment);
}

//===- Structure ----------------------------------------------------------===//

LogicalResult TileLoops::lowerProducer(Region &role) {
  if (failed(lower(role.front())))
    return failure();
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  dead.clear();
  return success();
}

LogicalResult TileLoops::lowerConsumer(Region &role, llvm::function_ref<void(OpBuilder &)> fill) {
  this->fill = fill;
  if (failed(lower(role.front())))
    return failure();
  dropTiles(role);
  return success();
}

/// What has carried tiles, places and accumulators carries nothing.
void TileLoops::dropTiles(Region &role) {
  Value none = arith::ConstantOp::create(entry, loc, entry.getI32IntegerAttr(0));
  auto drop = [&](ValueRange values) {
    for (Value value : values)
      if (isTileValue(value.getType()))
        value.setType(none.getType());
  };
  role.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (isTileValue(operand.get().getType()))
        operand.set(none);
  });
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  role.walk([&](Operation *op) { drop(op->getResults()); });
  role.walk([&](Block *block) { drop(block->getArguments()); });
}

/// What ends a call of the producer stays.
LogicalResult TileLoops::lower(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    auto own = [&](auto typed) { return lower(typed); };
    if (auto done = lowerOneOf<scf::ForOp, scf::IfOp>(op, own)) {
      if (failed(*done))
        return failure();
      continue;
    }
    loc = op.getLoc();
    auto done = lowerOneOf<AcquireOp, AdvanceOp, RevisitOp, ReleaseOp, LoadTileOp, LoadRunOp, SplatOp, MmaOp, MmaGatheredOp,
                           CompleteOp, MapOp, ReduceRowsOp, ColumnsOp, ReadTileOp, ReadColumnsOp, LoadRowsOp,
                           LoadColumnsOp, LoadAccOp, StoreAccOp, LoadEntriesOp, StoreTileOp, StoreRowsOp,
                           StoreBlocksOp>(op, own);
    if (done && (fill || !isa<ReleaseOp>(op)))
      dead.push_back(&op);
  }
  return success();
}

void TileLoops::lower(CompleteOp op) {
  for (auto [before, after] : llvm::zip(op.getValues(), op.getResults()))
    if (isCarried(before))
      accs[after] = carriedOf(before);
}

static Value load(OpBuilder &b, Location loc, Value number) {
  return LLVM::LoadOp::create(b, loc, b.getI64Type(), number);
}

/// Of a consumer, and where there are numbers; the producer fills one place after the other.
bool TileLoops::isCarried(Value value) {
  if (isa<RingType>(value.getType()))
    return fill && stages.find(ringOf(value))->second.filled;
  return isa<AccType>(value.getType());
}

/// An accumulator, or a place, which may be the first of a ring.
Acc TileLoops::carriedOf(Value value) {
  if (value.getDefiningOp<RingOp>() && !accs.contains(value))
    LLVM::StoreOp::create(entry, loc, constant(0), made(value, value.getType()).pointer);
  return accs.lookup(value);
}

Value TileLoops::numberOf(OpBuilder &b, Value place) { return load(b, loc, carriedOf(place).pointer); }

/// Calls the producer until it has filled the place.
void TileLoops::await(OpBuilder &b, const Stages &ring, Value number) {
  auto until = scf::WhileOp::create(b, loc, TypeRange(), ValueRange());
  OpBuilder test = OpBuilder::atBlockEnd(b.createBlock(&until.getBefore()));
  scf::ConditionOp::create(test, loc, less(test, load(test, loc, ring.filled), add(test, number, constant(1))), ValueRange());
  OpBuilder body = OpBuilder::atBlockEnd(b.createBlock(&until.getAfter()));
  fill(body);
  scf::YieldOp::create(body, loc);
  b.setInsertionPointAfter(until);
}

void TileLoops::placeTiles(OpBuilder &b, const Stages &ring, Value number, ValueRange found) {
  Value stage = number ? arith::RemUIOp::create(b, loc, number, constant(ring.count)).getResult() : Value();
  for (auto [tile, base] : llvm::zip(found, ring.tiles)) {
    auto type = cast<TileType>(tile.getType());
    Value elements = stage ? constant(type.getCount() * type.getRows() * type.getColumns()) : Value();
    tiles[tile] = stage ? address(b, base, type.getElementType(), multiply(b, stage, elements)) : base;
  }
}

void TileLoops::lower(AcquireOp op) {
  OpBuilder b(op);
  const Stages &ring = stages.find(ringOf(op.getRing()))->second;
  Value number;
  if (ring.filled)
    number = fill ? numberOf(b, op.getRing()) : load(b, loc, ring.filled);
  if (ring.filled && fill)
    await(b, ring, number);
  else if (fill)
    fill(b);
  placeTiles(b, ring, number, op.getTiles());
}

void TileLoops::lower(RevisitOp op) {
  OpBuilder b(op);
  placeTiles(b, stages.find(ringOf(op.getRing()))->second, numberOf(b, op.getRing()), op.getTiles());
}

void TileLoops::moveOn(Value place, Value next) {
  OpBuilder b(next.getDefiningOp());
  Value number = add(b, numberOf(b, place), constant(1));
  LLVM::StoreOp::create(b, loc, number, made(next, next.getType()).pointer);
}

void TileLoops::lower(ReleaseOp op) {
  OpBuilder b(op);
  const Stages &ring = stages.find(ringOf(op.getRing()))->second;
  if (fill && ring.filled)
    moveOn(op.getRing(), op.getNext());
  else if (ring.filled)
    LLVM::StoreOp::create(b, loc, add(b, load(b, loc, ring.filled), constant(1)), ring.filled);
}

/// What a loop carries lies in memory of its own: it comes there before the loop, and after each round.
LogicalResult TileLoops::lower(scf::ForOp loop) {
  OpBuilder before(loop);
  SmallVector<unsigned> carried;
  for (auto [n, init] : llvm::enumerate(loop.getInits())) {
    if (!isCarried(init))
      continue;
    Acc from = carriedOf(init), own = made(loop.getRegionIterArg(n), init.getType());
    accs[loop.getResult(n)] = own;
    copy(before, init.getType(), from, own);
    carried.push_back(n);
  }
  if (failed(lower(*loop.getBody())))
    return failure();
  OpBuilder end(loop.getBody()->getTerminator());
  SmallVector<Acc> nexts;
  for (unsigned n : carried) { // one that another takes the place of is put aside
    Value next = loop.getBody()->getTerminator()->getOperand(n);
    Acc from = carriedOf(next);
    bool isOther = llvm::any_of(carried, [&](unsigned other) {
      return other != n && accs.lookup(loop.getRegionIterArg(other)).pointer == from.pointer;
    });
    if (isOther) {
      Acc aside = make(next.getType());
      copy(end, next.getType(), from, aside);
      from = aside;
    }
    nexts.push_back(from);
  }
  for (auto [n, next] : llvm::zip(carried, nexts))
    copy(end, loop.getResult(n).getType(), next, accs.lookup(loop.getResult(n)));
  return success();
}

LogicalResult TileLoops::lower(scf::IfOp op) {
  for (Value result : op.getResults())
    if (isCarried(result))
      made(result, result.getType());
  for (Region &side : op->getRegions()) {
    if (side.empty())
      continue;
    if (failed(lower(side.front())))
      return failure();
    OpBuilder end(side.front().getTerminator());
    for (auto [value, result] : llvm::zip(side.front().getTerminator()->getOperands(), op.getResults()))
      if (isCarried(result))
        copy(end, value.getType(), carriedOf(value), accs.lookup(result));
  }
  return success();
}

//===- Tiles --------------------------------------------------------------===//

Value TileLoops::tileAt(OpBuilder &b, Value tile, Value place) {
  auto type = cast<TileType>(tile.getType());
  Value base = tiles.lookup(tile);
  if (!place)
    return base;
  Value elements = constant(type.getRows() * type.getColumns());
  return address(b, base, type.getElementType(), multiply(b, wide(b, place), elements));
}

/// One of the rows (of transposed tiles side by side, of the columns) at a place of the contraction.
Value TileLoops::elementOf(OpBuilder &b, TileType tile, bool transposed, Value base, Value side, Value depth) {
  Value columns = constant(tile.getColumns()), row = side, column = depth, first = constant(0);
  if (transposed) {
    Value number = arith::DivUIOp::create(b, loc, side, columns);
    first = multiply(b, number, constant(tile.getRows() * tile.getColumns()));
    row = depth;
    column = arith::RemUIOp::create(b, loc, side, columns);
  }
  Value place = add(b, add(b, multiply(b, row, columns), column), first);
  Value value = LLVM::LoadOp::create(b, loc, tile.getElementType(), address(b, base, tile.getElementType(), place));
  return single(b, value);
}

void TileLoops::lower(LoadTileOp op) {
  OpBuilder b(op);
  TileType tile = op.getTile().getType();
  Type element = tile.getElementType();
  OperandRange indices = op.getIndices();
  ArrayAttr strides = op.getStridesAttr();
  Value source = ownMatrix(b, {op.getSource(), *op.getShape(), strides}, indices, element);
  Value row = wide(b, indices.drop_back().back()), column = wide(b, indices.back()),
        to = tileAt(b, op.getTile(), op.getPlace());
  TileType piece = pieceOf(op);
  int64_t count = op.getPlace() ? 1 : tile.getCount(), before = partOf(op).number * piece.getRows() * piece.getColumns();
  for (int64_t n = 0; n < count; ++n) {
    Value next = n == 0 ? column : add(b, column, constant(n * tile.getColumns()));
    int64_t first = n * tile.getRows() * tile.getColumns() + before;
    Value own = first == 0 ? to : address(b, to, element, constant(first));
    loadBox(b, piece, {source, *op.getShape(), strides}, row, next, own);
  }
}

Value TileLoops::ownMatrix(OpBuilder &b, const MatrixBatch &batch, ValueRange indices, Type element) {
  return batch.shape.size() == 2 ? batch.array : matrixOfBatch(b, loc, kernel, batch, indices, element);
}

/// One tile; elements outside of the matrix are 0.
void TileLoops::loadBox(OpBuilder &b, TileType tile, const MatrixBatch &from, Value row, Value column, Value to) {
  Type element = tile.getElementType();
  ArrayRef<Attribute> sizes = from.shape.getValue().take_back(2);
  Value rows = size(sizes[0]), columns = size(sizes[1]), pitch = from.strides ? size(from.strides.getValue().back()) : columns;
  Value width = constant(tile.getColumns()), height = constant(tile.getRows());
  auto copy = [&](OpBuilder &at, Value n, Value m) {
    Value own = add(at, row, n), place = add(at, column, m);
    Value inside = arith::AndIOp::create(at, loc, less(at, own, rows), less(at, place, columns));
    Value value = elementOr0(at, loc, from.array, add(at, multiply(at, own, pitch), place), element, inside);
    LLVM::StoreOp::create(at, loc, value, address(at, to, element, add(at, multiply(at, n, width), m)));
  };
  if (threads == 1)
    return loop(b, constant(0), height, constant(1), [&](OpBuilder &in, Value n) {
      loop(in, constant(0), width, constant(1), [&](OpBuilder &at, Value m) { copy(at, n, m); });
    });
  // Neighbours of a row are read by neighbouring threads.
  loop(b, thread, multiply(b, height, width), constant(threads), [&](OpBuilder &at, Value n) {
    copy(at, arith::DivUIOp::create(at, loc, n, width), arith::RemUIOp::create(at, loc, n, width));
  });
}

/// Tiles that lie one after another, row by row.
void TileLoops::lower(LoadRunOp op) {
  OpBuilder b(op);
  TileType tile = op.getTile().getType();
  Type element = tile.getElementType();
  Value elements = constant(tile.getRows() * tile.getColumns()), to = tiles.lookup(op.getTile()),
        source = op.getSource();
  Value first = multiply(b, wide(b, op.getPosition()), elements), count = multiply(b, wide(b, op.getCount()), elements);
  loop(b, thread, count, constant(threads), [&](OpBuilder &in, Value n) {
    Value value = LLVM::LoadOp::create(in, loc, element, address(in, source, element, add(in, first, n)));
    LLVM::StoreOp::create(in, loc, value, address(in, to, element, n));
  });
}
