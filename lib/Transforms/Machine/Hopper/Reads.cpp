// SPDX-License-Identifier: Apache-2.0
/// \file
/// Accumulators that are read: from other accumulators, from tiles, and element by element from arrays.
#include "../../Buffers/Addressing.h"
#include "../Roles/Halves.h"
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

//===- Tiles --------------------------------------------------------------===//

/// 16-byte chunks are exchanged by the row's number.
static Value swizzled(OpBuilder &b, Location loc, Instructions &i, Value offset, int64_t line) {
  Value row = arith::ShRUIOp::create(b, loc, offset, i.constant(3));
  return arith::XOrIOp::create(b, loc, offset, arith::AndIOp::create(b, loc, row, i.constant(line - 16)));
}

Value RoleLowering::fragment(OpBuilder &b, Instructions &i, int64_t pair, int64_t line, bool transposed) {
  Location loc = group.lane.getLoc();
  Value matrix = arith::ShRUIOp::create(b, loc, group.lane, i.constant(3));
  Value row = arith::AndIOp::create(b, loc, group.lane, i.constant(7));
  Value low = arith::AndIOp::create(b, loc, matrix, i.constant(1));
  Value high = arith::ShRUIOp::create(b, loc, matrix, i.constant(1));
  if (transposed) { // a row of the box is a column of the accumulator; 16 rows further all is exchanged alike
    Value boxRow = i.add(i.multiply(high, 8), row);
    Value bytes = i.add(i.multiply(group.warp, 32), i.multiply(low, 16));
    return i.add(swizzled(b, loc, i, i.add(i.multiply(boxRow, line), bytes), line), pair * 16 * line);
  }
  Value boxRow = i.add(i.add(i.multiply(low, 8), row), i.multiply(group.warp, 16));
  Value bytes = i.add(i.multiply(high, 16), pair * 32);
  return swizzled(b, loc, i, i.add(i.multiply(boxRow, line), bytes), line);
}

static LogicalResult refuseRows(ReadTileOp op) {
  return op.emitError("tiles: rows of bf16 or f16 tiles have 16, 32 or 64 elements; got ") << op.getTile().getType();
}

LogicalResult RoleLowering::lower(OpBuilder &b, ReadTileOp op) {
  TileType tile = op.getTile().getType();
  AccType acc = op.getAcc().getType();
  Type element = tile.getElementType();
  int64_t line = lineBytes(tile);
  if (!acc.getElementType().isF32())
    return holdTile(b, op);
  if (failed(checkAcc(op, acc)))
    return failure();
  if (!line || acc.getColumns() % 16 != 0 || element.getIntOrFloatBitWidth() != 16)
    return refuseRows(op);
  Pieces values;
  for (int64_t pair = 0; pair < acc.getColumns() / 16 && !waitsForStore(op.getAcc()); ++pair)
    llvm::append_range(values, readPair(b, op, /*row=*/0, 2 * pair));
  setPieces(op.getAcc(), values);
  return success();
}

/// The four words of a thread in columns [16 * pair, 16 * pair + 16), of tiles that stand side by side.
SmallVector<Value> RoleLowering::readWords(OpBuilder &b, ReadTileOp op, int64_t pair) {
  Instructions i(b, op.getLoc());
  TileType tile = op.getTile().getType();
  int64_t perTile = op.getTransposed() ? pair + 1 : tile.getColumns() / 16;
  Value address = i.add(tileAddress(i, op.getTile(), op.getPlace()), pair / perTile * bytesPerTile(tile));
  Value from = i.add(address, fragment(b, i, pair % perTile, lineBytes(tile), op.getTransposed()));
  return i.loadMatrices(from, op.getTransposed());
}

/// As the left side of products takes it: two halves a word. All words have been loaded before the stage is released.
LogicalResult RoleLowering::holdTile(OpBuilder &b, ReadTileOp op) {
  AccType acc = op.getAcc().getType();
  if (failed(checkHeld(op, acc)))
    return failure();
  if (!lineBytes(op.getTile().getType()))
    return refuseRows(op);
  Pieces words, loaded;
  for (int64_t pair = 0; pair < acc.getColumns() / 16; ++pair) {
    llvm::append_range(words, readWords(b, op, pair));
    loaded.push_back(words.back());
  }
  Instructions i(b, op.getLoc());
  i.waitForLoads(loaded);
  setPieces(op.getAcc(), words);
  return success();
}

/// The eight elements of a thread in 16 columns.
RoleLowering::Pieces RoleLowering::readPair(OpBuilder &b, ReadTileOp op, int64_t, int64_t column) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  SmallVector<Value> words = readWords(b, op, column / 2);
  if (!waitsForStore(op.getAcc())) // a store uses what it reads
    i.waitForLoads(words.front());
  return widened(b, loc, words, op.getTile().getType().getElementType());
}

//===- Arrays -------------------------------------------------------------===//

/// The row of a thread's first elements.
static Value rowOf(OpBuilder &b, Location loc, Instructions &i, const Warpgroup &group) {
  Value quad = arith::ShRUIOp::create(b, loc, group.lane, i.constant(2));
  return i.add(i.multiply(group.warp, 16), quad);
}

/// So many elements behind `first`, which the kernel counts in its own width.
static Value behind(OpBuilder &b, Value first, Value own) {
  Location loc = own.getLoc();
  return arith::AddIOp::create(b, loc, first, castInteger(b, loc, own, first.getType()));
}

LogicalResult RoleLowering::lower(OpBuilder &b, ReadColumnsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  AccType acc = op.getAcc().getType();
  if (failed(checkAcc(op, acc)))
    return failure();
  Value own = i.multiply(arith::AndIOp::create(b, loc, group.lane, i.constant(3)), 8);
  auto [values, loaded] = columnsAt(b, loc, shareOf(acc), i.add(pieces(op.getTile())[0], here(i, own)));
  bool isStart = llvm::all_of(op->getUsers(), llvm::IsaPred<MmaOp>);
  if (!isStart) // a product that begins there uses what is read
    i.waitForLoads(loaded);
  setPieces(op.getAcc(), values);
  return success();
}

LogicalResult RoleLowering::lower(OpBuilder &b, LoadRowsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  if (failed(checkLoadRows(op)))
    return failure();
  Value array = mapping.lookupOrDefault(op.getSource()), size = mapping.lookupOrDefault(op.getSize());
  Value first = behind(b, mapping.lookupOrDefault(op.getFirst()), rowOf(b, loc, i, group));
  Pieces rows;
  for (int64_t below : {0, 8}) {
    Value index = i.add(first, below);
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, size);
    rows.push_back(numberOr0(b, loc, array, index, *op.getType(), inside));
  }
  setPieces(op.getAcc(), rows);
  return success();
}

RoleLowering::Pieces RoleLowering::loadColumnPair(OpBuilder &b, LoadColumnsOp op, int64_t eight) {
  Instructions i(b, op.getLoc());
  Value array = mapping.lookupOrDefault(op.getSource()), size = mapping.lookupOrDefault(op.getSize());
  Value own = i.multiply(arith::AndIOp::create(b, op.getLoc(), group.lane, i.constant(3)), 2);
  Value first = i.add(behind(b, mapping.lookupOrDefault(op.getFirst()), own), 8 * eight);
  Pieces pair;
  for (int64_t beside : {0, 1})
    pair.push_back(columnElement(b, op, array, i.add(first, beside), size));
  return pair;
}

Value RoleLowering::rowIn(OpBuilder &b, ValueRange firsts, int64_t below) {
  Location loc = group.lane.getLoc();
  Instructions i(b, loc);
  Value own = rowOf(b, loc, i, group);
  if (firsts.size() == 1)
    return i.add(behind(b, firsts[0], own), below);
  if (below)
    own = i.add(own, below);
  int64_t rows = kStoreRows / static_cast<int64_t>(firsts.size());
  Value first = chosenOf(b, loc, firsts, arith::DivUIOp::create(b, loc, own, i.constant(rows)));
  return i.add(first, arith::RemUIOp::create(b, loc, own, i.constant(rows)));
}

/// Two neighbouring bytes at once, each 0 or 1.
LogicalResult RoleLowering::lower(OpBuilder &b, LoadEntriesOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  AccType acc = op.getAcc().getType();
  int64_t stride = op.getStride();
  if (failed(checkAcc(op, acc)))
    return failure();
  if (stride % 2 != 0)
    return op.emitError("tiles: the validity bitmap has an even number of columns; got ") << stride;
  auto wide = [&](Value value) { return arith::ExtSIOp::create(b, loc, b.getI64Type(), value).getResult(); };
  Value size = mapping.lookupOrDefault(op.getSize());
  Value array = mapping.lookupOrDefault(op.getBitmap());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(size.getType()));
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, size, zero);
  SmallVector<Value> firsts;
  for (Value row : op.getRows())
    firsts.push_back(mapping.lookupOrDefault(row));
  auto isKept = [&](int64_t below) -> Value { // nobody stores a group without a row
    return arith::MaxSIOp::create(b, loc, rowIn(b, firsts, below), i.constant(0));
  };
  Value upper = isKept(0), lower = isKept(8);
  Value lane = arith::AndIOp::create(b, loc, group.lane, i.constant(3));
  Value column = i.add(mapping.lookupOrDefault(op.getColumn()), i.multiply(lane, 2));
  SmallVector<Value> bases;
  for (Value row : {upper, lower}) {
    Value start = arith::MulIOp::create(b, loc, wide(row), i.constant64(stride));
    Value first = arith::AddIOp::create(b, loc, start, wide(column));
    bases.push_back(LLVM::GEPOp::create(b, loc, array.getType(), b.getI8Type(), array, ArrayRef<LLVM::GEPArg>{first}));
  }
  auto guard = scf::IfOp::create(b, loc, SmallVector<Type>(acc.getColumns() / 2, b.getF32Type()), some,
                                 /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder then = OpBuilder::atBlockEnd(guard.thenBlock()), otherwise = OpBuilder::atBlockEnd(guard.elseBlock());
  Pieces values;
  for (int64_t eight = 0; eight < acc.getColumns(); eight += 8)
    for (Value base : bases)
      llvm::append_range(values, entryPair(then, loc, base, static_cast<int32_t>(eight)));
  scf::YieldOp::create(then, loc, values);
  Value one = arith::ConstantOp::create(otherwise, loc, otherwise.getF32FloatAttr(1.0f));
  scf::YieldOp::create(otherwise, loc, Pieces(values.size(), one));
  setPieces(op.getAcc(), guard.getResults());
  return success();
}
