// SPDX-License-Identifier: Apache-2.0
/// \file
/// Loads into tiles behind barriers, and stores of accumulators through shared memory.
#include "../../Buffers/Addressing.h"
#include "../../Buffers/EmitSize.h"
#include "RoleLowering.h"

using namespace mlir;
using namespace lacis;
using namespace lacis::hopper;

/// The copy engine takes boxes to multiples of 128 bytes, and runs to multiples of 16: parts of a vector are runs, which end
/// with the row.
void RoleLowering::loadVectorPart(OpBuilder &b, LoadTileOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType piece = pieceOf(op);
  int64_t each = piece.getElementType().getIntOrFloatBitWidth() / 8;
  SmallVector<Value> place = llvm::map_to_vector(mapped(op.getIndices()), [&](Value index) {
    return castInteger(b, loc, index, b.getI64Type());
  });
  Value length = emitSize(b, loc, op->getParentOfType<func::FuncOp>(), cast<SizeAttr>(op.getShape()->getValue().back()));
  Value first = arith::MulIOp::create(b, loc, place[place.size() - 2], length);
  first = arith::AddIOp::create(b, loc, first, place.back());
  Value source = mapping.lookupOrDefault(op.getSource());
  Value from = LLVM::GEPOp::create(b, loc, source.getType(), piece.getElementType(), source, ArrayRef<LLVM::GEPArg>{first});
  Value left = arith::SubIOp::create(b, loc, length, place.back());
  left = arith::MinSIOp::create(b, loc, left, i.constant64(piece.getColumns()));
  Value bytes = i.multiply(castInteger(b, loc, left, b.getI32Type()), each);
  Pieces at = pieces(op.getTile());
  i.expectBytes(at[1], bytes);
  i.copyRun(i.add(at[0], partOf(op).number * piece.getColumns() * each), from, bytes, at[1]);
}

LogicalResult RoleLowering::lower(OpBuilder &b, LoadTileOp op) {
  Instructions i(b, op.getLoc());
  TileType tile = op.getTile().getType(), piece = pieceOf(op);
  if (partOf(op).count > 1 && tile.getRows() == 1)
    return loadVectorPart(b, op), success();
  FailureOr<Value> map =
      maps.get(op, op.getSource(), *op.getShape(), tile.getElementType(), piece.getRows(), piece.getColumns());
  if (failed(map))
    return failure();
  Pieces at = pieces(op.getTile());
  Value address = i.add(tileAddress(i, op.getTile(), op.getPlace()), partOf(op).number * bytesPerTile(piece));
  int64_t count = op.getPlace() ? 1 : tile.getCount();
  i.expectBytes(at[1], i.constant(count * bytesPerTile(piece)));
  for (int64_t n = 0; n < count; ++n) {
    SmallVector<Value> place = mapped(op.getIndices());
    place.back() = i.add(place.back(), n * tile.getColumns());
    i.copyBox(i.add(address, n * bytesPerTile(tile)), *map, place, at[1]);
  }
  return success();
}

/// The array lies in global memory as it will in shared memory: one copy, of as many tiles as there are.
void RoleLowering::lower(OpBuilder &b, LoadRunOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType tile = op.getTile().getType();
  int64_t size = bytesPerTile(tile);
  maps.exchangeChunks(op.getSource(), tile.getColumns() * tile.getElementType().getIntOrFloatBitWidth() / 8);
  Pieces at = pieces(op.getTile());
  Value count = mapping.lookupOrDefault(op.getCount());
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, count, i.constant(0));
  auto guard = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false);
  OpBuilder then = guard.getThenBodyBuilder();
  Instructions inner(then, loc);
  Value bytes = inner.multiply(count, size);
  Value position = arith::ExtSIOp::create(then, loc, then.getI64Type(), mapping.lookupOrDefault(op.getPosition()));
  Value offset = arith::MulIOp::create(then, loc, position, inner.constant64(size));
  Value source = mapping.lookupOrDefault(op.getSource());
  Value from =
      LLVM::GEPOp::create(then, loc, source.getType(), then.getI8Type(), source, ArrayRef<LLVM::GEPArg>{offset});
  inner.expectBytes(at[1], bytes);
  inner.copyRun(at[0], from, bytes, at[1]);
}

//===- Stores -------------------------------------------------------------===//

/// The part of `pass` in a buffer, after what is left to compute.
void RoleLowering::writeBox(OpBuilder b, Value acc, int64_t pass, int64_t width, bool transposed, Type type,
                            Value buffer) {
  Instructions i(b, acc.getLoc());
  for (int64_t pair = 0; pair < width / 16; ++pair) {
    int64_t at = 4 * (pass * width / 8 + pair * 2);
    SmallVector<Value> registers;
    for (int64_t n = 0; n < 8; n += 2)
      registers.push_back(i.pack(element(b, acc, at + n), element(b, acc, at + n + 1), type));
    Value offset = fragment(b, i, pair, transposed ? kStoreRows * 2 : width * 2, transposed);
    i.storeMatrices(i.add(buffer, offset), registers, transposed);
  }
}

/// A box of 64 rows, or of 64 columns where it is transposed.
void RoleLowering::storeBox(OpBuilder &b, Value acc, int64_t pass, bool transposed, Type type, Store store) {
  Location loc = acc.getLoc();
  Instructions i(b, loc);
  int64_t buffers = memory.buffersPerConsumer, width = memory.storeColumns;
  Value buffer = i.add(i.add(group.shared, memory.stores + pass % buffers * memory.storeBytes()),
                       i.multiply(group.consumer, buffers * memory.storeBytes()));
  Value id = i.add(group.consumer, 1);
  Value first = arith::AndIOp::create(b, loc, i.equal(group.warp, 0), i.equal(group.lane, 0));
  {
    auto guard = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
    OpBuilder then = guard.getThenBodyBuilder();
    Instructions(then, loc).waitStores(memory.inTurns ? buffers - 1 : 0, /*read=*/true);
  }
  i.synchronize(id, kGroupThreads);
  if (waitsForStore(acc)) { // a branch keeps the assembler from mixing the arithmetic of all parts: few values live
    auto apart = scf::IfOp::create(b, loc, i.opaqueTrue(), /*withElseRegion=*/false);
    writeBox(apart.getThenBodyBuilder(), acc, pass, width, transposed, type, buffer);
  } else {
    writeBox(b, acc, pass, width, transposed, type, buffer);
  }
  i.fenceSharedStores();
  i.synchronize(id, kGroupThreads);
  auto guard = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  OpBuilder then = guard.getThenBodyBuilder();
  Instructions inThen(then, loc);
  store(inThen, then, buffer);
  Instructions(then, loc).commitStores();
}

static LogicalResult checkStore(Operation *op, AccType type, Type element, int64_t width) {
  if (failed(checkAcc(op, type)))
    return failure();
  if (type.getColumns() % width != 0 || !(element.isBF16() || element.isF16()))
    return op->emitError("tiles: stores are of a multiple of 16 columns, to bf16 or f16; got ")
           << type << " to " << element;
  return success();
}

/// Tile by tile, where the copy engine takes them from when all are written.
LogicalResult RoleLowering::storeThrough(OpBuilder &b, StoreTileOp op) {
  Location loc = op.getLoc();
  Instructions i(b, loc);
  TileType tile = op.getThrough().getType();
  int64_t width = tile.getColumns(), passes = op.getValue().getType().getColumns() / width;
  auto acquire = op.getThrough().getDefiningOp<AcquireOp>();
  if (failed(checkStore(op, op.getValue().getType(), *op.getType(), width)))
    return failure();
  if (!acquire || !awaited.contains(ringOf(acquire.getRing())) || acquire->getBlock() != op->getBlock() || !lineBytes(tile))
    return op.emitError("tiles: a store goes through a tile that awaited products alone have read, and before its stage is "
                        "released");
  FailureOr<Value> map = maps.get(op, op.getTarget(), *op.getShape(), *op.getType(), kStoreRows, width);
  if (failed(map))
    return failure();
  Value to = tileAddress(i, op.getThrough(), op.getSlot());
  for (int64_t pass = 0; pass < passes; ++pass) {
    OpBuilder apart = b;
    Value part = i.add(to, pass * bytesPerTile(tile));
    if (waitsForStore(op.getValue())) // see storeBox
      apart = scf::IfOp::create(b, loc, i.opaqueTrue(), /*withElseRegion=*/false).getThenBodyBuilder();
    writeBox(apart, op.getValue(), pass, width, /*transposed=*/false, *op.getType(), part);
  }
  i.fenceSharedStores();
  i.synchronize(i.add(group.consumer, 1), kGroupThreads);
  Value first = arith::AndIOp::create(b, loc, i.equal(group.warp, 0), i.equal(group.lane, 0));
  OpBuilder then = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false).getThenBodyBuilder();
  Instructions one(then, loc);
  for (int64_t pass = 0; pass < passes; ++pass) {
    SmallVector<Value> place = mapped(op.getIndices());
    place.back() = one.add(place.back(), pass * width);
    one.storeBox(*map, place, one.add(to, pass * bytesPerTile(tile)));
  }
  one.commitStores();
  return success();
}

LogicalResult RoleLowering::lower(OpBuilder &b, StoreTileOp op) {
  if (op.getThrough())
    return storeThrough(b, op);
  AccType type = op.getValue().getType();
  OperandRange indices = op.getIndices();
  Value number = indices.size() == 3 ? indices[0] : Value(), row = indices.drop_back().back();
  if (op.getType()->isF32() && succeeded(checkAcc(op, type)))
    return op.getTransposed() ? storeColumns(b, op) : storeRows(b, op, row, indices.back(), number), success();
  int64_t width = memory.storeColumns, passes = type.getColumns() / width;
  if (failed(checkStore(op, type, *op.getType(), width)))
    return failure();
  bool transposed = op.getTransposed();
  FailureOr<Value> map = maps.get(op, op.getTarget(), *op.getShape(), *op.getType(), transposed ? width : kStoreRows,
                                  transposed ? kStoreRows : width);
  if (failed(map))
    return failure();
  for (int64_t pass = 0; pass < passes; ++pass)
    storeBox(b, op.getValue(), pass, transposed, *op.getType(),
             [&](Instructions &store, OpBuilder &, Value buffer) {
               SmallVector<Value> place = mapped(op.getIndices());
               Value &first = place[place.size() - (transposed ? 2 : 1)];
               first = store.add(first, pass * width);
               store.storeBox(*map, place, buffer);
             });
  return success();
}

/// One box of all groups of rows is written to shared memory; each that has a place is stored from there.
LogicalResult RoleLowering::lower(OpBuilder &b, StoreBlocksOp op) {
  Location loc = op.getLoc();
  AccType type = op.getValue().getType();
  int64_t width = memory.storeColumns, passes = type.getColumns() / width;
  int64_t rows = type.getRows() / static_cast<int64_t>(op.getSlots().size());
  bool isSingle = op.getType()->isF32() && succeeded(checkAcc(op, type));
  if (!isSingle && failed(checkStore(op, type, *op.getType(), width)))
    return failure();
  if (rows % 8 != 0)
    return op.emitError("tiles: groups of ") << rows << " rows are stored; groups of 8 or a multiple can be";
  if (isSingle)
    return storeRows(b, op, op.getSlots(), /*column=*/Value(), /*number=*/Value()), success();
  FailureOr<Value> map = maps.get(op, op.getTarget(), *op.getShape(), *op.getType(), rows, width);
  if (failed(map))
    return failure();
  for (int64_t pass = 0; pass < passes; ++pass)
    storeBox(b, op.getValue(), pass, /*transposed=*/false, *op.getType(),
             [&](Instructions &store, OpBuilder &then, Value buffer) {
               for (auto [n, slot] : llvm::enumerate(op.getSlots())) {
                 Value row = mapping.lookupOrDefault(slot);
                 Value some = arith::CmpIOp::create(then, loc, arith::CmpIPredicate::sge, row, store.constant(0));
                 auto guard = scf::IfOp::create(then, loc, some, /*withElseRegion=*/false);
                 OpBuilder inner = guard.getThenBodyBuilder();
                 Instructions one(inner, loc);
                 one.storeBox(*map, {row, one.constant(pass * width)},
                              one.add(buffer, static_cast<int64_t>(n) * rows * width * 2));
               }
             });
  return success();
}
