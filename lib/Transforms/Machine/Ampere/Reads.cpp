// SPDX-License-Identifier: Apache-2.0
/// \file
/// Accumulators that are read: from tiles, and element by element from arrays.
#include "../../Buffers/Addressing.h"
#include "../Roles/Halves.h"
#include "Fragments.h"
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::ampere;

/// Registers come in the order of a left operand, whose contraction runs along the columns of the accumulator.
SmallVector<Value> RoleLowering::readWords(OpBuilder &b, ReadTileOp op, int64_t row, int64_t column) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType tile = op.getTile().getType();
  Share share = shareOf(op.getAcc().getType());
  bool transposed = op.getTransposed();
  Value address = tileAddress(i, op.getTile(), op.getPlace()), side = i.constant(0), across = i.constant(8 * column);
  if (byRows)
    side = i.multiply(group.warp, share.rows);
  else if (transposed)
    address = i.add(address, i.multiply(group.warp, share.columns * lineBytes(tile)));
  else
    across = i.add(across, i.multiply(group.warp, share.columns));
  Fragments fragments(i, b, loc, tile, transposed, /*isLeft=*/true, address, side, group.lane);
  SmallVector<Value> words = transposed ? fragments.load(row, column / 2) : fragments.loadBeside(row, across);
  if (!waitsForStore(op.getAcc())) // a store uses what it reads
    loads[b.getInsertionBlock()].push_back(words.front());
  return words;
}

RoleLowering::Pieces RoleLowering::readPair(OpBuilder &b, ReadTileOp op, int64_t row, int64_t column) {
  return widened(b, op.getLoc(), readWords(b, op, row, column), op.getTile().getType().getElementType());
}

LogicalResult RoleLowering::lower(OpBuilder &b, ReadTileOp op) {
  AccType acc = op.getAcc().getType();
  TileType tile = op.getTile().getType();
  bool isHeld = !acc.getElementType().isF32();
  if (failed(isHeld ? checkHeld(op, acc) : checkAcc(op, acc)))
    return failure();
  if (!lineBytes(tile) || tile.getElementType().getIntOrFloatBitWidth() != 16)
    return op.emitError("tiles: what is read of a tile has rows of 16, 32 or 64 elements of bf16 or f16; got ") << tile;
  if (waitsForStore(op.getAcc()))
    return success();
  Share share = shareOf(acc);
  Pieces values;
  for (int64_t row = 0; row < share.tall(); ++row)
    for (int64_t column = 0; column < share.wide(); column += 2)
      llvm::append_range(values, isHeld ? Pieces(readWords(b, op, row, column)) : readPair(b, op, row, column));
  setPieces(op.getAcc(), values);
  return success();
}

LogicalResult RoleLowering::lower(OpBuilder &b, ReadColumnsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  AccType acc = op.getAcc().getType();
  if (failed(checkAcc(op, acc)))
    return failure();
  Share share = shareOf(acc);
  Value first = i.add(pieces(op.getTile())[0], i.multiply(firstPiece(b, loc, share).second, 4));
  auto [values, loaded] = columnsAt(b, loc, share, first);
  llvm::append_range(loads[b.getInsertionBlock()], loaded);
  setPieces(op.getAcc(), values);
  return success();
}

LogicalResult RoleLowering::lower(OpBuilder &b, LoadRowsOp op) {
  bool isForLoops = llvm::any_of(op->getUsers(), [&](Operation *user) {
    auto loop = user->getParentOfType<scf::ForOp>();
    return loop && op->getBlock()->findAncestorOpInBlock(*loop);
  });
  if (failed(checkLoadRows(op)))
    return failure();
  if (isForLoops) {
    loadRows(b, op);
    rowsOfLoops.insert(op.getAcc());
  }
  return success();
}

void RoleLowering::loadRows(OpBuilder &b, LoadRowsOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  Share share = shareOf(op.getAcc().getType());
  Value array = mapping.lookupOrDefault(op.getSource()), size = wide(b, op.getSize());
  Value own = arith::ShRUIOp::create(b, loc, group.lane, i.constant(2));
  if (byRows)
    own = i.add(own, i.multiply(group.warp, share.rows));
  Value first = arith::AddIOp::create(b, loc, wide(b, op.getFirst()), castInteger(b, loc, own, b.getI64Type()));
  Pieces rows;
  for (int64_t row = 0; row < share.rows; row += 8) {
    Value index = arith::AddIOp::create(b, loc, first, i.constant64(row));
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, size);
    rows.push_back(numberOr0(b, loc, array, index, *op.getType(), inside));
  }
  setPieces(op.getAcc(), rows);
}

RoleLowering::Pieces RoleLowering::loadColumnPair(OpBuilder &b, LoadColumnsOp op, int64_t eight) {
  Instructions i(b, op.getLoc());
  Value array = mapping.lookupOrDefault(op.getSource()), size = wide(b, op.getSize());
  Value own = i.multiply(arith::AndIOp::create(b, op.getLoc(), group.lane, i.constant(3)), 2);
  if (!byRows)
    own = i.add(own, i.multiply(group.warp, shareOf(op.getAcc().getType()).columns));
  Value first = arith::AddIOp::create(b, op.getLoc(), wide(b, op.getFirst()), castInteger(b, op.getLoc(), own, b.getI64Type()));
  Pieces pair;
  for (int64_t beside : {0, 1}) {
    Value index = arith::AddIOp::create(b, op.getLoc(), first, i.constant64(8 * eight + beside));
    pair.push_back(columnElement(b, op, array, index, size));
  }
  return pair;
}

void RoleLowering::loadFor(OpBuilder &b, Value acc) {
  if (auto map = acc.getDefiningOp<MapOp>())
    for (Value value : map.getValues())
      loadFor(b, value);
  else if (auto load = acc.getDefiningOp<LoadRowsOp>(); load && !rowsOfLoops.contains(acc))
    loadRows(b, load);
}

/// Entries are read line by line, as stores go.
Value RoleLowering::element(OpBuilder &b, Value acc, size_t n, const Share &share) {
  auto found = entries.find(acc);
  return found == entries.end() ? Accumulators::element(b, acc, n, share)
                                : found->second[static_cast<int64_t>(n) / 4 % share.wide() * 2 + n % 2];
}

LogicalResult RoleLowering::lower(OpBuilder &b, MapOp op) {
  bool readsEntries = llvm::any_of(op.getValues(), [](Value value) { return value.getDefiningOp<LoadEntriesOp>(); });
  if (readsEntries && !waitsForStore(op.getResult()))
    return op.emitError("tiles: only what is stored, and nothing else, may read entries");
  return Accumulators::lower(b, op);
}
